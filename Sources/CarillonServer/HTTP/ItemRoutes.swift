import CarillonBasics
import CarillonCore
import CarillonWire
import Foundation
import Hummingbird

/// Items: their publishers write and read them with a sender key, and operators say what apps' items are like.
struct ItemRoutes: Sendable {
    let domain: Domain

    func add(to routes: Routes) {
        routes.on(.post, "/v1/items/:item/updates", update)
        routes.on(.get, "/v1/items/:item", show)
        routes.on(.get, "/v1/apps/:app/items", rules)
        routes.on(.put, "/v1/apps/:app/items", setRules)
    }

    // MARK: Publishers

    /// The app of a sender key, or the one that an operator names.
    private func app(_ request: Request) async throws -> AppSerial {
        let key = try await domain.keys.authorize(bearer: request.bearer, as: [.sender, .admin])
        let named = try request.uri.queryParameters["app"].map { try AppID.checked(String($0)) }
        guard let id = key.app ?? named else {
            throw Refusal(.parameterInvalid, "An admin key is of no app: say whose items they are with ?app=….")
        }
        if let app = key.app, let named, app != named { throw Refusal(.roleForbidden, "The key is of app \(app).") }
        guard let app = try await domain.apps.serial(of: id) else {
            throw Refusal(.appUnknown, "There is no app \"\(id)\".")
        }
        return app
    }

    private func name(_ context: RouteContext) throws -> ItemName {
        try ItemName.checked(try context.parameters.require("item").removingPercentEncoding ?? "")
    }

    @Sendable private func update(_ request: Request, _ context: RouteContext) async throws -> Response {
        let app = try await app(request)
        let name = try name(context)
        let update = try WrittenUpdate(try await request.bytes(upTo: Limits.apiBodyBytes), namesItem: false)
        let receipt = try await domain.items.publish(update.fields, place: update.place, to: name, of: app)
        return Response(status: .ok, json: receipt.json)
    }

    @Sendable private func show(_ request: Request, _ context: RouteContext) async throws -> Response {
        let name = try name(context)
        let item = try await domain.items.item(name, of: try await app(request))
        return Response(status: .ok, text: item.json(name), type: "application/json")
    }

    // MARK: Operators

    private func serial(_ request: Request, _ context: RouteContext) async throws -> AppSerial {
        let app = try await domain.app(request, context)
        guard let serial = try await domain.apps.serial(of: app) else {
            throw Refusal(.appUnknown, "There is no app \"\(app)\".")
        }
        return serial
    }

    @Sendable private func rules(_ request: Request, _ context: RouteContext) async throws -> Response {
        let rules = try await domain.items.rules(of: try await serial(request, context))
        return Response(status: .ok, text: rules.json.bytes, type: "application/json")
    }

    @Sendable private func setRules(_ request: Request, _ context: RouteContext) async throws -> Response {
        let app = try await serial(request, context)
        let rules = try ItemRules(try await request.object(of: ItemRules.memberNames))
        try await domain.items.setRules(rules, of: app)
        return Response(status: .ok, text: rules.json.bytes, type: "application/json")
    }
}

extension ItemReceipt {
    var json: JSONValue {
        .object([
            .init(name: "version", value: .integer(Int(version))), .init(name: "repeated", value: .bool(isRepeated)),
        ])
    }
}
