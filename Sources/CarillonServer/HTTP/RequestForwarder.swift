import CarillonCore
import CarillonWire
import Hummingbird
import Logging

/// Forwards each request to its home. Only a server with several homes uses it.
///
/// A request without a home runs in the routes of one home of this process. If the home reports that another home has the
/// requested object, the request is repeated there (``Homes/handle(_:at:of:)``).
struct RequestForwarder: HTTPResponder {
    private let homes: Homes
    private let finder: HomeFinder
    private let table: RouteTable
    private let local: any HTTPResponder<RouteContext>
    private let clientAddress: ClientAddress
    private let server: ServerID

    /// - Parameters:
    ///   - routes: All routes.
    ///   - local: Runs requests without a home.
    init(
        domain: Domain, homes: Homes, routes: Routes, local: any HTTPResponder<RouteContext>, clientAddress: ClientAddress
    ) {
        self.homes = homes
        finder = HomeFinder(domain: domain, homes: homes)
        table = RouteTable(routes.names)
        self.local = local
        self.clientAddress = clientAddress
        server = domain.server
    }

    func respond(to request: Request, context: RouteContext) async throws -> Response {
        guard let found = table.route(of: request), !HomeFinder.runsHere(request, by: found) else {
            return try await local.respond(to: request, context: context)
        }
        do {
            let body = try await HomeBody(request.body, context)
            guard let place = try await finder.place(of: request, body, by: found) else {
                let request = Request(head: request.head, body: RequestBody(body))
                return try await local.respond(to: request, context: context)
            }
            let address = clientAddress.of(context.origin, request.headers)
            var forwarded = HomeRequest(request, body: body, context, from: address)
            // The transfer of a file can take long, and a file is in no shard.
            if found.home != .attachment { forwarded.shard = place.shard }
            return Response(try await homes.handle(forwarded, at: place.shard, of: place.device))
        } catch {
            return refused(error, found.home, context.logger)
        }
    }

    private func refused(_ error: any Error, _ home: RouteHome, _ logger: Logger) -> Response {
        var response =
            home == .tokenInField
            ? GNPRoutes.response(to: error, logger: logger) : Response(refusal: Refusal(error, logger: logger))
        // No route created this response.
        response.headers[.carillonServer] = server.description
        return response
    }
}
