import CarillonCore
import Hummingbird
import NIOCore

/// What a request carries through the routes.
struct RouteContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    let connection: any NIOCore.Channel
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
