import CarillonBasics
package import CarillonCore
package import CarillonWire
import Hummingbird

/// The routes for the push credentials, the alert and the pushes of an app. All require an admin key.
struct GatewayRoutes: Sendable {
    let domain: HomeDomain

    func add(to routes: Routes) {
        routes.list("/v1/apps/:app/credentials", list)
        routes.on(.put, "/v1/apps/:app/credentials/:environment", set)
        routes.on(.delete, "/v1/apps/:app/credentials/:environment", remove)
        routes.on(.get, "/v1/apps/:app/alert", alert)
        routes.on(.put, "/v1/apps/:app/alert", setAlert)
        routes.on(.delete, "/v1/apps/:app/alert", removeAlert)
        routes.list("/v1/apps/:app/pushes/test", testPushes)
        routes.list("/v1/apps/:app/pushes/parked", query: ["limit"], parked)
        routes.on(.post, "/v1/apps/:app/pushes/parked/requeue", requeue)
    }

    private func environment(_ context: RouteContext) throws -> PushEnvironment {
        try PushEnvironment.checked(try context.parameters.require("environment"))
    }

    // MARK: Credentials

    @Sendable private func list(_ request: Request, _ context: RouteContext) async throws -> Response {
        let all = try await domain.gateways.credentials(of: try await domain.app(request, context))
        return Response(
            status: .ok, json: ["credentials": all.map { CredentialBody($0.credential, $0.summary, $0.fault) }])
    }

    @Sendable private func set(_ request: Request, _ context: RouteContext) async throws -> Response {
        let app = try await domain.app(request, context)
        let body = try await request.object(of: GatewaySecret.memberNames)
        let (credential, summary) = try await domain.gateways.set(body, of: app, for: try environment(context))
        return Response(status: .ok, json: CredentialBody(credential, summary, nil))
    }

    @Sendable private func remove(_ request: Request, _ context: RouteContext) async throws -> Response {
        try await domain.gateways.remove(of: try await domain.app(request, context), for: try environment(context))
        return Response(status: .noContent)
    }

    // MARK: Alerts

    @Sendable private func alert(_ request: Request, _ context: RouteContext) async throws -> Response {
        let text = try await domain.gateways.alert(of: try await domain.app(request, context))
        guard let text else {
            throw Refusal(.notFound, "The app has no alert text; its messages wake the app in the background.")
        }
        return Response(status: .ok, text: text.json.bytes, type: "application/json")
    }

    @Sendable private func setAlert(_ request: Request, _ context: RouteContext) async throws -> Response {
        let app = try await domain.app(request, context)
        let text = try AlertText(try await request.object(of: AlertText.memberNames))
        try await domain.gateways.setAlert(text, of: app)
        return Response(status: .ok, text: text.json.bytes, type: "application/json")
    }

    @Sendable private func removeAlert(_ request: Request, _ context: RouteContext) async throws -> Response {
        try await domain.gateways.setAlert(nil, of: try await domain.app(request, context))
        return Response(status: .noContent)
    }

    // MARK: Pushes

    @Sendable private func testPushes(_ request: Request, _ context: RouteContext) async throws -> Response {
        let sent = domain.gateways.testPushes(of: try await domain.appSerial(request, context))
        return Response(status: .ok, json: ["pushes": sent.map(\.json)])
    }

    @Sendable private func parked(_ request: Request, _ context: RouteContext) async throws -> Response {
        let app = try await domain.appSerial(request, context)
        let limit = try request.number("limit", in: 1...1000, default: 100)
        let parked = try await domain.pushes.parkedPushes(of: app, in: .all, limit: limit)
        return Response(status: .ok, json: ["pushes": parked.map { PushBody($0, isConfigured: true) }])
    }

    @Sendable private func requeue(_ request: Request, _ context: RouteContext) async throws -> Response {
        let app = try await domain.appSerial(request, context)
        // The homes find the pushes in the store. For `.all` see `LocalHome.shards`.
        let count = try await domain.pushes.requeueParkedPushes(of: app, in: .all, at: domain.time.now())
        return Response(status: .ok, json: ["requeued": count])
    }
}

extension CredentialBody {
    package init(_ credential: GatewayCredential, _ summary: GatewaySummary, _ fault: String?) {
        self.init(
            app: credential.app.text, environment: credential.queue.environment.rawValue, kind: summary.kind,
            bundleID: summary.bundleID, keyID: summary.keyID, teamID: summary.teamID, expiresAt: summary.expiresAt,
            setAt: Timestamp3339.text(credential.setAt.milliseconds), fault: fault)
    }
}

extension PushBody {
    init(_ record: PushRecord, isConfigured: Bool) {
        let state: String
        switch record.standing {
        case .state(.scheduled) where !isConfigured: state = "unconfigured"
        // A leased push may not have been sent yet.
        case .state(.scheduled), .state(.leased): state = "scheduled"
        case .state(.handed): state = "handed"
        case .state(.rejected): state = "rejected"
        case .state(.cancelled): state = "cancelled"
        case .state(.expired): state = "expired"
        case .state(.parked): state = "parked"
        case .suspended: state = "suspended"
        }
        self.init(
            kind: record.kind.name, state: state, at: Timestamp3339.text(record.at.milliseconds),
            dueAt: record.dueAt.map { Timestamp3339.text($0.milliseconds) }, apnsID: record.id?.uuidText,
            reason: record.reason, shortened: record.isShortened ? true : nil)
    }
}

extension PushKind {
    fileprivate var name: String {
        switch self {
        case .wake: "wake"
        case .alert: "alert"
        case .trigger, .unconditional: "trigger"
        }
    }
}

/// A push in the environment `test`, which is stored instead of sent.
extension TestGateway.Sent {
    fileprivate var json: JSONValue {
        [
            "at": .string(Timestamp3339.text(at.milliseconds)), "apnsID": .string(id.uuidText),
            "payload": JSONValue(parsing: payload) ?? .null,
        ]
    }
}
