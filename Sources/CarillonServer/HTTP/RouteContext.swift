import CarillonCore
import HTTPTypes
import Hummingbird
import NIOCore
import NIOHTTP1

/// What a request carries through the routes.
struct RouteContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    let connection: any NIOCore.Channel
    /// Whether the head of the answer is all that is wanted. The method is GET then.
    var isHead = false
    /// Tells something before the answer, where the peer understands it; of a request whose body comes as it likes.
    var tell: (@Sendable (HTTPResponseStatus, HTTPFields) -> Void)?
    /// Of a request that came by a connection for HTTP.
    var share: ConnectionShare?
    /// Of a request that came by a device's socket.
    var session: Session?

    struct Session: Sendable {
        var device: Device
        /// Where it is.
        var address: NetworkAddress?
    }

    init(source: ApplicationRequestContextSource) {
        connection = source.channel
        coreContext = .init(source: source)
    }
}
