import CarillonCore
import NIOCore

/// Where a request comes from.
enum RequestOrigin: Sendable {
    case connection(any NIOCore.Channel)
    /// The process that accepted the request, which knows the address of the client.
    case entry(NetworkAddress?)
}
