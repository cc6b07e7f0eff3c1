import NIOCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// An address cannot be listened on.
package struct ListenFault: Error {
    let address: String
    let reason: String

    /// For the operator.
    package var sentence: String { "cannot listen on \(address): \(reason)" }

    /// Returns the reason with what to do about it, without a full stop.
    package static func reason(of code: CInt) -> String {
        switch code {
        case EADDRINUSE: "the address is in use; stop the other server, or choose another port"
        case EADDRNOTAVAIL: "this machine has no such address"
        case EACCES, EPERM: "permission denied; ports below 1024 and some directories need more rights"
        case ENOENT: "the directory of the socket does not exist"
        case EMFILE, ENFILE: "too many open files"
        default: "the system reports error \(code)"
        }
    }

    /// Runs what begins to listen.
    static func naming<Value>(_ place: ListenPlace, _ listen: () async throws -> Value) async throws -> Value {
        do {
            return try await listen()
        } catch let error as IOError {
            throw ListenFault(address: place.description, reason: reason(of: error.errnoCode))
        }
    }
}

/// `host:port`, as an address is written: IPv6 in brackets.
package enum HostAndPort {
    package static func text(_ host: String, _ port: Int) -> String {
        host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }
}
