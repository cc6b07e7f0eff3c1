import Hummingbird

/// Finds the route of a request by the method and the path, with the same result as the router.
struct RouteTable: Sendable {
    struct Found {
        var home: RouteHome
        /// The name of the route in ``Routes/names``.
        var route: String
        /// The parameters of the path, not decoded.
        var parameters: [Substring: Substring]
    }

    private struct Route {
        var name: String
        var home: RouteHome
        /// The parts of the path; `{name}` matches any text.
        var parts: [Substring]

        /// The sort key, by which parts that match any text come last.
        var order: String { parts.map { $0.first == "{" ? "1" : "0" }.joined() }

        /// Returns the parameters of a path; nil if the path does not match.
        func parameters(of path: [Substring]) -> [Substring: Substring]? {
            var parameters: [Substring: Substring] = [:]
            for (part, value) in zip(parts, path) {
                if part.first == "{" {
                    parameters[part.dropFirst().dropLast()] = value
                } else if part != value {
                    return nil
                }
            }
            return parameters
        }
    }

    private struct Shape: Hashable {
        var method: String
        var partCount: Int
    }

    /// Routes with fixed parts precede routes with a parameter in the same place.
    private let routes: [Shape: [Route]]

    /// - Parameter names: See ``Routes/names``. A name that is not in ``RouteHome/table`` is ignored.
    init(_ names: [String]) {
        var routes: [Shape: [Route]] = [:]
        for name in names {
            let words = name.split(separator: " ")
            guard words.count == 2, let home = RouteHome.table[name] else { continue }
            let parts = words[1].split(separator: "/")
            routes[Shape(method: String(words[0]), partCount: parts.count), default: []]
                .append(Route(name: name, home: home, parts: parts))
        }
        self.routes = routes.mapValues { $0.sorted { $0.order < $1.order } }
    }

    /// Returns the route of a request; nil if no route has its method and path.
    func route(of request: Request) -> Found? {
        let path = request.uri.path.split(separator: "/")
        for route in routes[Shape(method: request.method.rawValue, partCount: path.count)] ?? [] {
            guard let parameters = route.parameters(of: path) else { continue }
            return Found(home: route.home, route: route.name, parameters: parameters)
        }
        return nil
    }
}
