import CarillonWire
import HTTPTypes
import Hummingbird

/// Collects the routes, and gives every known path an answer to the methods that it does not have.
final class Routes {
    typealias Handler = @Sendable (Request, RouteContext) async throws -> Response

    private let router = Router(context: RouteContext.self, options: .autoGenerateHeadEndpoints)
    private var methods: [String: Set<HTTPRequest.Method>] = [:]
    private var paths: [String: RouterPath] = [:]

    init(middleware: [any MiddlewareProtocol<Request, Response, RouteContext>]) {
        for middleware in middleware { router.add(middleware: middleware) }
    }

    func on(_ method: HTTPRequest.Method, _ path: RouterPath, _ handler: @escaping Handler) {
        router.on(path, method: method, use: handler)
        methods[path.description, default: []].insert(method)
        paths[path.description] = path
    }

    func finished() -> Router<RouteContext> {
        for (name, known) in methods {
            guard let path = paths[name] else { continue }
            var allowed = known
            if known.contains(.get) { allowed.insert(.head) }
            let list = allowed.map(\.rawValue).sorted().joined(separator: ", ")
            for method in [HTTPRequest.Method.get, .post, .put, .patch, .delete] where !known.contains(method) {
                router.on(path, method: method) { _, _ -> Response in
                    var response = Response(
                        refusal: Refusal(.methodNotAllowed, "This address knows the methods \(list)."))
                    response.headers[.allow] = list
                    return response
                }
            }
        }
        return router
    }
}
