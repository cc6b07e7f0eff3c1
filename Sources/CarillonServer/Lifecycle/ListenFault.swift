import NIOCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// The server cannot listen on an address.
package struct ListenFault: Error {
    let address: String
    let reason: String

    /// A sentence for the operator.
    package var sentence: String { "cannot listen on \(address): \(reason)" }

    /// Returns the reason and a remedy, without a full stop.
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

    /// Runs an operation that begins to listen. Converts its errors to faults with the address.
    static func naming<Value>(_ place: ListenPlace, _ listen: () async throws -> Value) async throws -> Value {
        do {
            return try await listen()
        } catch let error as IOError {
            throw ListenFault(address: place.description, reason: reason(of: error.errnoCode))
        }
    }
}

/// Formats an address as `host:port`, with IPv6 addresses in brackets.
package enum HostAndPort {
    package static func text(_ host: String, _ port: Int) -> String {
        host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }
}
