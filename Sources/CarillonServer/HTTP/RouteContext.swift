import CarillonCore
import HTTPTypes
import Hummingbird
import Logging
import NIOHTTP1

/// The context of a request in the routes.
struct RouteContext: RequestContext {
    private struct ContextSource: RequestContextSource {
        var logger: Logger
    }

    var coreContext: CoreRequestContextStorage
    let origin: RequestOrigin
    /// Whether only the head of the response is needed. The method is GET in this case.
    var isHead = false
    /// Sends an interim response, if the peer supports it. Only for a request with a streamed body.
    var inform: (@Sendable (HTTPResponseStatus, HTTPFields) -> Void)?
    /// The usage of the HTTP connection on which the request arrived.
    var usage: ConnectionUsage?
    /// The shard of the request's pass; nil if no move waits for the request.
    var shard: Shard?
    /// The session of a request that arrived on a device's socket.
    var session: Session?

    struct Session: Sendable {
        var device: Device
        /// The client's address.
        var address: NetworkAddress?
    }

    /// Whether the body is streamed.
    var hasStreamedBody: Bool { inform != nil }

    init(source: ApplicationRequestContextSource) { self.init(.connection(source.channel), logger: source.logger) }

    init(_ origin: RequestOrigin, logger: Logger) {
        self.origin = origin
        coreContext = .init(source: ContextSource(logger: logger))
    }
}
