import CarillonCore
import HTTPTypes
import Hummingbird
import Logging
import NIOHTTP1

/// What a request carries through the routes.
struct RouteContext: RequestContext {
    private struct OwnSource: RequestContextSource {
        var logger: Logger
    }

    var coreContext: CoreRequestContextStorage
    let origin: RequestOrigin
    /// Whether the head of the answer is all that is wanted. The method is GET then.
    var isHead = false
    /// Tells something before the answer, where the peer understands it; of a request whose body comes as it likes.
    var inform: (@Sendable (HTTPResponseStatus, HTTPFields) -> Void)?
    /// Of a request that came by a connection for HTTP.
    var share: ConnectionShare?
    /// The shard of the request's pass; nil if no move waits for the request.
    var shard: Shard?
    /// Of a request that came by a device's socket.
    var session: Session?

    struct Session: Sendable {
        var device: Device
        /// Where it is.
        var address: NetworkAddress?
    }

    /// Whether the body comes in parts, as its sender likes.
    var hasStreamedBody: Bool { inform != nil }

    init(source: ApplicationRequestContextSource) { self.init(.connection(source.channel), logger: source.logger) }

    init(_ origin: RequestOrigin, logger: Logger) {
        self.origin = origin
        coreContext = .init(source: OwnSource(logger: logger))
    }
}
