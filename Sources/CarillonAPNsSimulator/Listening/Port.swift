extension APNsSimulator {
    /// An address on which one of the services is offered.
    public struct Port: Hashable, Sendable {
        /// What is offered.
        public enum Service: String, Hashable, Sendable, CaseIterable {
            /// Pushes to devices, and broadcasts; the real ones are at port 443 and 2197.
            case push
            /// Broadcast channels; the real ones are at port 2195 (sandbox) and 2196 (production).
            case management
            /// Both, which the real service has not.
            case everything
        }

        /// What is offered.
        public var service: Service
        /// The environment. A request whose `:authority` is one of Apple's hosts is for that host's environment.
        public var environment: Environment
        /// The address to listen on.
        public var host: String
        /// The port number; 0 for any that is free.
        public var port: Int
        /// Whether it is HTTP/2 over TLS; otherwise plain HTTP/2 with prior knowledge.
        public var isSecure: Bool

        /// Makes a port; without arguments, pushes for the sandbox at any free port of this machine.
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
