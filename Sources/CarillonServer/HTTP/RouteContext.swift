import Hummingbird
import NIOCore

/// What a request carries through the routes.
struct RouteContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    let connection: any NIOCore.Channel

    init(source: ApplicationRequestContextSource) {
        connection = source.channel
        coreContext = .init(source: source)
    }
}
