import CarillonCore
import NIOCore

/// The source of a request.
enum RequestOrigin: Sendable {
    case connection(any NIOCore.Channel)
    /// Another process that accepted the request. The value is the address of the client.
    case entry(NetworkAddress?)
}
