extension APNsSimulator {
    /// What a simulator must know before it starts.
    public struct Configuration: Sendable {
        /// What is offered where.
        public var ports: [Port]
        /// Where the page and the JSON API are, without any protection; nil for nowhere.
        public var control: ControlAddress?
        /// Where the authority and the signing key are kept from one run to the next; nil for nowhere.
        public var dataDirectory: String?
        /// Names and addresses that the certificate holds, beside `localhost`, this machine's loopback addresses, the
        /// addresses of the ports and Apple's hosts.
        public var extraHosts: [String] = []
        /// What identifiers and chance begin with.
        public var seed: UInt64 = 1
        /// Threads that serve connections.
        public var eventLoops = 1
        /// How many requests are remembered; the oldest are forgotten.
        public var recordedRequests = 10_000
        /// Whether their bodies are remembered.
        public var recordsBodies = true
        /// How strict the service is.
        public var rules = Rules()
        /// How connections are treated.
        public var conditions = Conditions()
        /// The faults that are in force from the start.
        public var faults: [FaultRule] = []

        /// Makes a configuration; without arguments, pushes and channel management for the sandbox over TLS, each at a
        /// free port of this machine.
        public init(ports: [Port] = [Port(.push), Port(.management)]) { self.ports = ports }

        /// For benchmarks: accepts every device token, remembers nothing, and allows many streams from the first.
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
        /// The port number; 0 for any that is free.
        public var port: Int

        /// Makes an address; without arguments, any free port of this machine.
        public init(host: String = "127.0.0.1", port: Int = 0) {
            self.host = host
            self.port = port
        }
    }
}
