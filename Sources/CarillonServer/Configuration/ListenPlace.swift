/// An address on which a server listens.
package enum ListenPlace: Equatable, Sendable, CustomStringConvertible {
    case address(host: String, port: Int)
    /// A Unix socket that the server creates.
    case unix(path: String)
    case inherited(InheritedSocket)

    package var description: String {
        switch self {
        case .address(let host, let port): HostAndPort.text(host, port)
        case .unix(let path): "unix:\(path)"
        case .inherited(let socket): "file descriptor \(socket.descriptor)"
        }
    }
}
