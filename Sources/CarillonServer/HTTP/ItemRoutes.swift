import CarillonBasics
import CarillonCore
import CarillonWire
import Foundation
import Hummingbird
import Logging
import NIOCore

/// The routes of items. Publishers update and read items with a sender key, and operators set the rules for items of an app.
struct ItemRoutes: Sendable {
    let domain: HomeDomain
    let logger: Logger

    func add(to routes: Routes) {
        routes.on(.post, "/v1/items/updates", query: ["app"], updateMany)
        routes.on(.post, "/v1/items/:item/updates", query: ["app"], update)
        routes.list("/v1/items", query: ["after", "app", "limit", "prefix"], list)
        routes.on(.get, "/v1/items/:item", query: ["app"], show)
        routes.on(.delete, "/v1/items/:item", query: ["app"], delete)
        routes.on(.get, "/v1/apps/:app/items", rules)
        routes.on(.put, "/v1/apps/:app/items", query: ["validate"], setRules)
    }

    // MARK: Publishers

    private func name(_ context: RouteContext) throws -> ItemName {
        try ItemName.checked(try context.parameters.require("item").removingPercentEncoding ?? "")
    }

    /// - Throws: ``HomeFault/moved(to:)`` if another home has the item.
    private func checkHas(_ name: ItemName, of app: AppSerial) throws(HomeFault) {
        try domain.home.checkHas(Shard(of: app, item: name.text))
    }

    @Sendable private func update(_ request: Request, _ context: RouteContext) async throws -> Response {
        let app = try await domain.appOfSender(request).serial
        let name = try name(context)
        try checkHas(name, of: app)
        let update = try WrittenUpdate(try await request.bytes(upTo: Limits.apiBodyBytes), namesItem: false)
        let receipt = try await domain.items.publish(update.fields, place: update.place, to: name, of: app)
        return Response(status: .ok, json: receipt.json)
    }

    /// Publishes one update for each line of a body of any length. Lines are published in their order, many at once. A refused
    /// line does not affect the others.
    @Sendable private func updateMany(_ request: Request, _ context: RouteContext) async throws -> Response {
        let app = try await domain.appOfSender(request).serial
        var taken = TakenUpdates()
        var lines = UpdateLines()
        do {
            for try await part in request.body {
                // The key can be revoked while the stream continues.
                guard try await domain.appOfSender(request).serial == app else {
                    throw Refusal(.appUnknown, "The app was deleted.")
                }
                var rest = part
                while try lines.read(&rest) { await publish(lines.take(), of: app, &taken) }
                // No more data is available yet, so the received lines are published without delay.
                await publish(lines.take(), of: app, &taken)
            }
            try lines.end()
            await publish(lines.take(), of: app, &taken)
        } catch let refusal as Refusal {
            await publish(lines.take(), of: app, &taken)
            throw Refusal(
                refusal.code, "\(refusal.detail) \(taken.count) lines before were taken, \(taken.refused) of them refused.",
                retryAfterSeconds: refusal.retryAfterSeconds)
        }
        return Response(status: .ok, text: taken.json.bytes, type: "application/json")
    }

    private func publish(_ lines: [UpdateLines.Line], of app: AppSerial, _ taken: inout TakenUpdates) async {
        guard !lines.isEmpty else { return }
        // Parsing runs outside of the event loop, which serves other connections.
        let read = await withTaskExecutorPreference(globalConcurrentExecutor) { await Self.read(lines) }
        var updates: [(line: Int, item: ItemName, written: WrittenUpdate)] = []
        for (line, written) in zip(lines, read) {
            switch written {
            case .success(let written):
                if let item = written.item { updates.append((line.number, item, written)) }
            case .failure(let refusal): taken.refuse(line.number, refusal)
            }
        }
        let results =
            domain.homes.isOne
            ? await domain.items.publish(updates.map { ($0.item, $0.written.fields, $0.written.place) }, of: app)
            : await domain.publishAtHomes(
                updates.map { .init(item: $0.item, fields: $0.written.fields, place: $0.written.place) }, of: app)
        for (update, result) in zip(updates, results) {
            switch result {
            case .success(let receipt): taken.accept(receipt)
            case .failure(let error): taken.refuse(update.line, Refusal(error, logger: logger))
            }
        }
    }

    @concurrent private static func read(_ lines: [UpdateLines.Line]) async -> [Result<WrittenUpdate, Refusal>] {
        lines.map { line in Result { () throws(Refusal) in try WrittenUpdate(line.text, namesItem: true) } }
    }

    /// The path of this stream. The connection uses it to find requests with a streamed body.
    static let streamPath = "/v1/items/updates"

    @Sendable private func show(_ request: Request, _ context: RouteContext) async throws -> Response {
        let name = try name(context)
        let app = try await domain.appOfSender(request).serial
        try checkHas(name, of: app)
        let item = try await domain.items.item(name, of: app)
        return Response(status: .ok, text: item.json(name), type: "application/json")
    }

    @Sendable private func delete(_ request: Request, _ context: RouteContext) async throws -> Response {
        let app = try await domain.appOfSender(request).serial
        let name = try name(context)
        try checkHas(name, of: app)
        try await domain.items.delete(name, of: app)
        return Response(status: .noContent)
    }

    @Sendable private func list(_ request: Request, _ context: RouteContext) async throws -> Response {
        let app = try await domain.appOfSender(request).serial
        let limit = try request.number("limit", in: 1...1000, default: 100)
        let after = try text("after", of: request)
        let prefix = try text("prefix", of: request)
        let items = try await domain.listings.take(of: app) {
            try await domain.items.list(of: app, prefix: prefix, after: after, limit: limit + 1)
        }
        return Response(status: .ok, json: ItemList(items, limit: limit))
    }

    /// Returns a part of an item's name; empty if the parameter is absent.
    private func text(_ name: String, of request: Request) throws(Refusal) -> String {
        guard let text = request.uri.queryParameters[Substring(name)], !text.isEmpty else { return "" }
        guard let part = ItemName(text) else {
            throw Refusal(
                .parameterInvalid,
                "The parameter \"\(name)\" must have at most \(ItemName.longestBytes) bytes without control characters.")
        }
        return part.text
    }

    // MARK: Operators

    @Sendable private func rules(_ request: Request, _ context: RouteContext) async throws -> Response {
        let rules = try await domain.items.rules(of: try await domain.appSerial(request, context))
        return Response(status: .ok, text: rules.json.bytes, type: "application/json")
    }

    @Sendable private func setRules(_ request: Request, _ context: RouteContext) async throws -> Response {
        let app = try await domain.appSerial(request, context)
        try domain.home.checkHas(Shard(of: app))
        let rules = try ItemRules(try await request.object(of: ItemRules.memberNames))
        let ends: Int
        switch request.uri.queryParameters["validate"] {
        case "true"?: ends = try await domain.subscriptions.countClosed(by: rules, of: app)
        case nil, "false"?: ends = try await domain.subscriptions.setRules(rules, of: app)
        case .some: throw Refusal(.parameterInvalid, "The parameter \"validate\" must be true or false.")
        }
        return Response(status: .ok, text: rules.json(ending: ends).bytes, type: "application/json")
    }
}

extension ItemRules {
    /// Returns the JSON with the number of subscriptions that the rules end.
    fileprivate func json(ending count: Int) -> JSONValue {
        guard case .object(let members) = json else { return json }
        return .object(members + [.init(name: "ends", value: .integer(count))])
    }
}

extension ItemList {
    /// - Parameter items: One item more than the limit if another page follows.
    init(_ items: [ListedItem], limit: Int) {
        let page = items.prefix(limit)
        self.init(
            items: page.map { item in
                Item(
                    item: item.name.text, version: item.version,
                    updatedAt: Timestamp3339.text(item.updatedAt.milliseconds), subscriptions: item.subscriptions)
            }, next: items.count > limit ? page.last?.name.text : nil)
    }
}

extension ItemReceipt {
    var json: JSONValue {
        .object([
            .init(name: "version", value: .integer(Int(version))), .init(name: "repeated", value: .bool(isRepeated)),
        ])
    }
}
