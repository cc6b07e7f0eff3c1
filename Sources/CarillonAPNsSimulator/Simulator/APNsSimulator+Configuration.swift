extension APNsSimulator {
    /// The configuration of a simulator at its start.
    public struct Configuration: Sendable {
        /// The ports to listen on.
        public var ports: [Port]
        /// The address of the page and the JSON API, which are not protected; nil for none.
        public var control: ControlAddress?
        /// The directory in which the authority and the signing key are stored between runs; nil for none.
        public var dataDirectory: String?
        /// Additional names and addresses of the certificate. It always has `localhost`, the loopback addresses of this
        /// machine, the addresses of the ports, and Apple's hosts.
        public var extraHosts: [String] = []
        /// The seed of identifiers and random values.
        public var seed: UInt64 = 1
        /// The number of threads that serve connections.
        public var eventLoops = 1
        /// The number of requests that are recorded. The oldest are removed.
        public var recordedRequests = 10_000
        /// Whether the bodies of requests are recorded.
        public var recordsBodies = true
        /// The rules of the simulated service.
        public var rules = Rules()
        /// The behaviour towards connections.
        public var conditions = Conditions()
        /// The fault rules at the start.
        public var faults: [FaultRule] = []

        /// Makes a configuration. The default is pushes and channel management for the sandbox over TLS, each on a free port
        /// of this machine.
        public init(ports: [Port] = [Port(.push), Port(.management)]) { self.ports = ports }

        /// Returns a configuration for benchmarks: it accepts every device token, records nothing, and allows many streams
        /// from the start.
        public static func acceptingAll(ports: [Port] = [Port(.push)]) -> Configuration {
            var configuration = Configuration(ports: ports)
            configuration.rules.unknownDevices = .accept
            configuration.recordedRequests = 0
            configuration.recordsBodies = false
            configuration.conditions.firstStreams = configuration.conditions.streams
            return configuration
        }
    }

    /// The address of the page and the JSON API.
    public struct ControlAddress: Hashable, Sendable {
        /// The address to listen on.
        public var host: String
        /// The port number; 0 for any free port.
        public var port: Int

        /// Makes an address. The default is any free port of this machine.
        public init(host: String = "127.0.0.1", port: Int = 0) {
            self.host = host
            self.port = port
        }
    }
}
