import CarillonWire
import HTTPTypes
import Hummingbird

/// Adds the server's id to every response of a route, including refusals.
struct ServerNameMiddleware: RouterMiddleware {
    let server: ServerID

    @concurrent func handle(
        _ request: Request, context: RouteContext,
        next: @concurrent (Request, RouteContext) async throws -> Response
    ) async throws -> Response {
        var response = try await next(request, context)
        response.headers[.carillonServer] = server.description
        return response
    }
}
