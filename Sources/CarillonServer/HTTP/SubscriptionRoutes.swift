import CarillonBasics
import CarillonCore
import CarillonWire
import Hummingbird

/// A device's subscriptions on items.
struct SubscriptionRoutes: Sendable {
    let domain: HomeDomain
    let clientAddress: ClientAddress

    private static let listed: QueryParameters = ["after", "key", "limit", "status", "tag"]

    func add(to routes: Routes) {
        routes.on(.post, "/v1/device/subscriptions", make)
        routes.list("/v1/device/subscriptions", query: Self.listed, list)
        routes.on(.put, "/v1/device/subscriptions", compare)
        routes.on(.delete, "/v1/device/subscriptions", query: ["key", "status", "tag"], removeSome)
        routes.on(.get, "/v1/device/subscriptions/:subscription", show)
        routes.on(.patch, "/v1/device/subscriptions/:subscription", change)
        routes.on(.delete, "/v1/device/subscriptions/:subscription", remove)
        routes.list("/v1/devices/:device/subscriptions", query: Self.listed, listForOperator)
        routes.on(.get, "/v1/devices/:device/subscriptions/:subscription/explanation", explain)
    }

    private func device(_ request: Request, _ context: RouteContext) async throws -> Device {
        try await domain.device(request, context)
    }

    private func address(_ request: Request, _ context: RouteContext) -> NetworkAddress? {
        if let session = context.session { return session.address }
        return clientAddress.of(context.origin, request.headers)
    }

    private func id(_ context: RouteContext) throws -> SubscriptionID {
        guard let id = SubscriptionID(try context.parameters.require("subscription")) else {
            throw Refusal(.subscriptionUnknown, "A subscription ID must be 32 hexadecimal digits.")
        }
        return id
    }

    // MARK: Making

    @Sendable private func make(_ request: Request, _ context: RouteContext) async throws -> Response {
        let device = try await device(request, context)
        let definition = try Subscription.Definition(try await request.object(of: Subscription.Definition.memberNames))
        let (subscription, isNew) = try await domain.subscriptions.put(
            definition, of: device, from: address(request, context))
        return Response(status: isNew ? .created : .ok, json: SubscriptionBody(subscription))
    }

    @Sendable private func change(_ request: Request, _ context: RouteContext) async throws -> Response {
        let device = try await device(request, context)
        let patch = try await request.object(of: Subscription.Definition.changeableNames, mayBeMissing: true)
        let subscription = try await domain.subscriptions.change(
            try id(context), of: device, from: address(request, context)
        ) { definition throws(Refusal) in try definition.merge(patch) }
        return Response(status: .ok, json: SubscriptionBody(subscription))
    }

    // MARK: Looking

    @Sendable private func show(_ request: Request, _ context: RouteContext) async throws -> Response {
        let subscription = try await domain.subscriptions.find(try id(context), of: try await device(request, context))
        return Response(status: .ok, json: SubscriptionBody(subscription))
    }

    @Sendable private func list(_ request: Request, _ context: RouteContext) async throws -> Response {
        try await list(request, of: try await device(request, context))
    }

    private func list(_ request: Request, of device: Device) async throws -> Response {
        let limit = try request.number("limit", in: 1...1000, default: 100)
        var after = SubscriptionSerial(0)
        if let text = request.uri.queryParameters["after"] {
            guard let id = SubscriptionID(text) else {
                throw Refusal(.parameterInvalid, "\"after\" must be a \"next\" value from an earlier page.")
            }
            after = try await domain.subscriptions.find(id, of: device).serial
        }
        let filter = try self.filter(request)
        var page: [Subscription] = []
        var bytes = 0
        var isCut = true
        while page.count < limit, bytes < Self.listBytes {
            // A few at a time, as each may be long.
            let count = min(limit - page.count, Self.listedAtOnce)
            let some = try await domain.subscriptions.list(of: device, filter, after: after, limit: count)
            for subscription in some where bytes < Self.listBytes {
                bytes += subscription.definition.json.bytes.count + 400
                page.append(subscription)
                after = subscription.serial
            }
            guard some.count == count else {
                isCut = page.last?.serial != some.last?.serial && !some.isEmpty
                break
            }
        }
        return Response(
            status: .ok,
            json: SubscriptionList(
                subscriptions: page.map(SubscriptionBody.init), next: isCut ? page.last?.id.description : nil))
    }

    /// A list ends behind the entry that reaches it, so that whoever asks need not take more at once.
    private static let listBytes = 64 << 10
    private static let listedAtOnce = 50

    private func filter(_ request: Request) throws -> SubscriptionFilter {
        var filter = SubscriptionFilter()
        switch request.uri.queryParameters["status"] {
        case nil: break
        case .some(let name):
            guard let status = SubscriptionMachine.Status(rawValue: String(name)) else {
                throw Refusal(.parameterInvalid, "\"status\" must be \"subscribed\" or \"triggered\".")
            }
            filter.status = status
        }
        filter.key = request.uri.queryParameters["key"].map(String.init)
        filter.tag = request.uri.queryParameters["tag"].map(String.init)
        return filter
    }

    // MARK: Operators

    /// - Throws: ``HomeFault/moved(to:)`` if the device is in another shard than the request.
    private func deviceOfOperator(_ request: Request, _ context: RouteContext) async throws -> Device {
        _ = try await domain.keys.authorize(bearer: request.bearer, as: [.admin])
        let device = try await domain.devices.find(try DeviceID.checked(try context.parameters.require("device")))
        try domain.home.checkHas(device.serial, in: context.shard)
        return device
    }

    @Sendable private func listForOperator(_ request: Request, _ context: RouteContext) async throws -> Response {
        try await list(request, of: try await deviceOfOperator(request, context))
    }

    @Sendable private func explain(_ request: Request, _ context: RouteContext) async throws -> Response {
        let device = try await deviceOfOperator(request, context)
        let subscription = try await domain.subscriptions.find(try id(context), of: device)
        let explanations = try await domain.listings.take(of: device.app) {
            try await domain.subscriptions.explain(subscription)
        }
        return Response(
            status: .ok,
            json: ExplanationList(
                subscription: subscription.id.description, items: explanations.map(ExplanationList.Item.init)))
    }

    // MARK: A declared set

    /// The device says which keys it wants, with their hashes: those that it does not name go, and it is told which it should
    /// send.
    @Sendable private func compare(_ request: Request, _ context: RouteContext) async throws -> Response {
        let device = try await device(request, context)
        let refusal = Refusal(.fieldInvalid, "The field \"keys\" must be an object with the hash of each key.")
        guard case .object(let members)? = try await request.object(of: ["keys"])["keys"] else { throw refusal }
        var wanted: [String: String] = [:]
        for member in members {
            guard case .string(let hash) = member.value else { throw refusal }
            wanted[member.name] = hash
        }
        try domain.rateLimits.takeRegistration(
            of: device.serial, from: address(request, context))
        let (missing, removed) = try await domain.subscriptions.compare(wanted, of: device) { $0.hash }
        let body: JSONValue = ["wanted": .array(missing.map(JSONValue.string)), "removed": .integer(removed)]
        return Response(status: .ok, json: body)
    }

    // MARK: Ending

    @Sendable private func remove(_ request: Request, _ context: RouteContext) async throws -> Response {
        let device = try await device(request, context)
        try domain.rateLimits.takeRegistration(of: device.serial, from: address(request, context))
        guard try await domain.subscriptions.remove(.init(id: try id(context)), of: device) > 0 else {
            throw Refusal(.subscriptionUnknown, "The device has no such subscription.")
        }
        return Response(status: .noContent)
    }

    @Sendable private func removeSome(_ request: Request, _ context: RouteContext) async throws -> Response {
        let device = try await device(request, context)
        try domain.rateLimits.takeRegistration(of: device.serial, from: address(request, context))
        return Response(
            status: .ok, json: ["removed": try await domain.subscriptions.remove(try filter(request), of: device)])
    }
}

extension ExplanationList.Item {
    fileprivate init(_ explanation: SubscriptionExplanation) {
        self.init(
            item: explanation.item.text, version: explanation.version, verdict: explanation.verdict.rawValue,
            error: explanation.error,
            alternatives: explanation.alternatives.map { parts in
                parts.map { part in
                    .init(
                        text: part.text, value: part.value.map { ItemValue($0).text }, holds: part.holds,
                        isIndexed: part.isIndexed)
                }
            })
    }
}
