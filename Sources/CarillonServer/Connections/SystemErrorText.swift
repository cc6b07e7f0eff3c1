#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Texts of system errors, for logs.
enum SystemErrorText {
    /// Returns a clause such as "connection refused".
    static func of(_ code: CInt) -> String {
        switch code {
        case ECONNREFUSED: "connection refused"
        case ETIMEDOUT: "no answer"
        case EHOSTUNREACH, ENETUNREACH, ENETDOWN: "no route to the host"
        case ECONNRESET, EPIPE: "connection reset"
        case EMFILE, ENFILE: "too many open files"
        case ENOBUFS, ENOMEM: "not enough memory"
        case EADDRNOTAVAIL: "no local address is available"
        default: "error \(code) of the system"
        }
    }
}
