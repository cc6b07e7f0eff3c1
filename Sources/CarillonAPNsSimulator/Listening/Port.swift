extension APNsSimulator {
    /// An address of one of the services.
    public struct Port: Hashable, Sendable {
        /// The service of a port.
        public enum Service: String, Hashable, Sendable, CaseIterable {
            /// Pushes to devices, and broadcasts. The real service uses the ports 443 and 2197.
            case push
            /// The management of broadcast channels. The real service uses the ports 2195 (sandbox) and 2196 (production).
            case management
            /// Both services on one port, which the real service does not have.
            case everything
        }

        /// The service of the port.
        public var service: Service
        /// The environment. For a request whose `:authority` is one of Apple's hosts, the environment of that host is used.
        public var environment: Environment
        /// The address to listen on.
        public var host: String
        /// The port number; 0 for any free port.
        public var port: Int
        /// Whether the port uses HTTP/2 over TLS. Otherwise it uses plain HTTP/2 with prior knowledge.
        public var isSecure: Bool

        /// Makes a port. The default is pushes for the sandbox on any free port of this machine.
        public init(
            _ service: Service = .push, _ environment: Environment = .sandbox, host: String = "127.0.0.1", port: Int = 0,
            isSecure: Bool = true
        ) {
            self.service = service
            self.environment = environment
            self.host = host
            self.port = port
            self.isSecure = isSecure
        }

        var services: Submission.Services {
            switch service {
            case .push: .push
            case .management: .management
            case .everything: [.push, .management]
            }
        }
    }
}

typealias Port = APNsSimulator.Port
