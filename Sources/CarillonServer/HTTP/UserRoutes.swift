import CarillonBasics
package import CarillonCore
package import CarillonWire
import Hummingbird

/// The routes for the rules by which an app's users are identified. All require an admin key.
struct UserRoutes: Sendable {
    let domain: HomeDomain

    func add(to routes: Routes) {
        routes.on(.get, "/v1/apps/:app/users", show)
        routes.on(.put, "/v1/apps/:app/users", set)
        routes.on(.delete, "/v1/apps/:app/users", remove)
    }

    @Sendable private func show(_ request: Request, _ context: RouteContext) async throws -> Response {
        let (rules, setAt) = try await domain.users.rules(of: try await domain.app(request, context))
        return Response(status: .ok, json: UserRulesBody(rules, setAt: setAt))
    }

    @Sendable private func set(_ request: Request, _ context: RouteContext) async throws -> Response {
        let app = try await domain.app(request, context)
        let (rules, setAt) = try await domain.users.set(try await request.object(of: UserRules.memberNames), of: app)
        return Response(status: .ok, json: UserRulesBody(rules, setAt: setAt))
    }

    @Sendable private func remove(_ request: Request, _ context: RouteContext) async throws -> Response {
        try await domain.users.remove(of: try await domain.app(request, context))
        return Response(status: .noContent)
    }
}

extension UserRulesBody {
    package init(_ rules: UserRules, setAt: Timestamp) {
        self.init(
            algorithms: rules.algorithms.map(\.rawValue), audience: rules.audience, issuer: rules.issuer,
            setAt: Timestamp3339.text(setAt.milliseconds))
        switch rules.source {
        case .address(let address): jwksURL = address.text
        case .keys(let keys): if case .array(let keys)? = keys["keys"] { self.keys = keys.count }
        case .secrets(let secrets): self.secrets = secrets.count
        }
    }
}

extension AppUsers {
    /// Reads the user of the device in a body. Null signs the user out; an absent member changes nothing.
    func claim(in body: JSONValue, of app: AppSerial) async throws -> UserClaim? {
        switch body[UserRules.tokenMember] {
        case nil: nil
        case .null: .signedOut
        case .string(let token): .signedIn(try await user(assertedBy: token, in: app))
        default: throw Refusal(.fieldInvalid, "The field \"\(UserRules.tokenMember)\" must be a text or null.")
        }
    }
}
