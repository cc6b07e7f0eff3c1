import NIOCore

/// An address cannot be listened on.
package struct ListenFault: Error {
    let address: String
    let reason: String

    /// For the operator.
    package var sentence: String { "cannot listen on \(address): \(reason). Is another server running there?" }

    /// Runs what begins to listen.
    static func naming<Value>(_ place: ListenPlace, _ listen: () async throws -> Value) async throws -> Value {
        do {
            return try await listen()
        } catch let error as IOError {
            throw ListenFault(address: place.description, reason: error.description)
        }
    }
}

/// `host:port`, as an address is written: IPv6 in brackets.
package enum HostAndPort {
    package static func text(_ host: String, _ port: Int) -> String {
        host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }
}
