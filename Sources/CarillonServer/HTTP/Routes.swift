import CarillonWire
import HTTPTypes
import Hummingbird

/// Collects the routes. A request with an unsupported method of a known address is answered with 405.
final class Routes {
    typealias Handler = @Sendable (Request, RouteContext) async throws -> Response

    private struct Route {
        var method: HTTPRequest.Method
        var path: RouterPath
        var query: QueryParameters
        var handler: Handler
    }

    private var routes: [Route] = []
    private let answers: AnswerMemory
    private var elsewhere: [(method: HTTPRequest.Method, path: RouterPath)] = []
    private let server: ServerID?

    /// - Parameter server: The server's id in the header of every response; nil: no such header.
    init(_ answers: AnswerMemory, of server: ServerID? = nil) {
        self.answers = answers
        self.server = server
    }

    /// Adds a route that returns a list, which can be long. Only a few lists are created at a time, and only a few more can wait.
    func list(_ path: RouterPath, query: QueryParameters = [], _ handler: @escaping Handler) {
        on(.get, path, query: query) { [answers] request, context in
            try await answers.list { try await handler(request, context) }
        }
    }

    /// Adds a route. A request with other query parameters than the route's is refused before the handler is called.
    func on(
        _ method: HTTPRequest.Method, _ path: RouterPath, query: QueryParameters = [], _ handler: @escaping Handler
    ) {
        routes.append(
            Route(method: method, path: path, query: query) { request, context in
                try query.check(request.uri.queryParameters)
                return try await handler(request, context)
            })
    }

    /// Adds a method and path that other code than the routes answers.
    func declareExternal(_ method: HTTPRequest.Method, _ path: RouterPath) { elsewhere.append((method, path)) }

    /// Every method and path, in the order of declaration.
    var all: [(method: HTTPRequest.Method, path: String)] { routes.map { ($0.method, $0.path.description) } }

    func router() -> Router<RouteContext> {
        // HEAD is supported wherever GET is (RFC 9110 section 9.1).
        let router = Router(context: RouteContext.self, options: .autoGenerateHeadEndpoints)
        if let server { router.add(middleware: ServerNameMiddleware(server: server)) }
        router.add(middleware: ProblemMiddleware(addresses: addresses))
        for route in routes { router.on(route.path, method: route.method, use: route.handler) }
        return router
    }

    /// Every route as `METHOD /path/{name}`.
    var names: [String] { routes.map { "\($0.method.rawValue) \($0.path.description)" } }

    /// Every route of ``declareExternal(_:_:)``, in the same form.
    var externalNames: [String] { elsewhere.map { "\($0.method.rawValue) \($0.path.description)" } }

    /// The query parameters of each route, by its name.
    var queries: [String: QueryParameters] {
        Dictionary(uniqueKeysWithValues: zip(names, routes.map(\.query)))
    }

    private var addresses: [RoutedPath] {
        let known = routes.map { ($0.method, $0.path) } + elsewhere
        return Dictionary(grouping: known, by: \.1.description).map { path, known in
            var methods = Set(known.map(\.0.rawValue))
            if methods.contains("GET") { methods.insert("HEAD") }
            return RoutedPath(parts: path.split(separator: "/"), methods: methods.sorted().joined(separator: ", "))
        }
    }
}

/// An address that has routes, and its methods.
struct RoutedPath: Sendable {
    /// The parts of the path; `{name}` matches any text.
    var parts: [Substring]
    var methods: String

    func matches(_ path: [Substring]) -> Bool {
        parts.count == path.count && zip(parts, path).allSatisfy { $0.hasPrefix("{") || $0 == $1 }
    }
}
