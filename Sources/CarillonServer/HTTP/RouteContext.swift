import Hummingbird
import NIOCore

/// What a request carries through the routes.
struct RouteContext: RequestContext {
    var coreContext: CoreRequestContextStorage

    init(source: ApplicationRequestContextSource) {
        coreContext = .init(source: source)
    }
}
