import CarillonBasics
import CarillonCore
import CarillonWire
import Hummingbird

/// The routes for the approval hook of an app. All require an admin key.
struct ApprovalHookRoutes: Sendable {
    let domain: HomeDomain

    func add(to routes: Routes) {
        routes.on(.get, "/v1/apps/:app/veto", show)
        routes.on(.put, "/v1/apps/:app/veto", set)
        routes.on(.delete, "/v1/apps/:app/veto", remove)
    }

    @Sendable private func show(_ request: Request, _ context: RouteContext) async throws -> Response {
        let (address, setAt) = try await domain.approvalHooks.address(of: try await domain.app(request, context))
        return Response(status: .ok, json: ApprovalHookBody(url: address, secret: nil, setAt: setAt.text))
    }

    @Sendable private func set(_ request: Request, _ context: RouteContext) async throws -> Response {
        let app = try await domain.app(request, context)
        guard let url = try await request.object(of: ["url"]).textMember("url") else {
            throw Refusal(.fieldMissing, "The field \"url\" is missing.")
        }
        let (address, secret, setAt) = try await domain.approvalHooks.set(url, of: app)
        return Response(status: .ok, json: ApprovalHookBody(url: address, secret: secret, setAt: setAt.text))
    }

    @Sendable private func remove(_ request: Request, _ context: RouteContext) async throws -> Response {
        try await domain.approvalHooks.remove(of: try await domain.app(request, context))
        return Response(status: .noContent)
    }
}

extension Timestamp {
    fileprivate var text: String { Timestamp3339.text(milliseconds) }
}
