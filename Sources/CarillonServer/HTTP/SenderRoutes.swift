import CarillonCore
import CarillonWire
import HTTPTypes
import Hummingbird

/// The routes of senders for messages that ``PublishHandler`` accepted, and UnifiedPush's discovery for endpoints.
struct SenderRoutes: Sendable {
    let domain: HomeDomain
    let addresses: PublicAddresses

    func add(to routes: Routes) {
        routes.declareExternal(.post, "/push/:token")
        routes.on(.get, "/push/:token", query: .ignored, discover)
        routes.on(.get, "/message/:id", outcome)
        routes.on(.delete, "/message/:id", cancel)
        routes.on(.get, "/v1/messages/:id", outcomeForSender)
    }

    /// UnifiedPush's discovery. It was removed from the specification, but older software still uses it.
    @Sendable private func discover(_ request: Request, _ context: RouteContext) async throws -> Response {
        _ = try await domain.publisher.channel(of: try context.parameters.require("token"))
        return Response(status: .ok, text: Array(#"{"unifiedpush":{"version":1}}"#.utf8), type: "application/json")
    }

    @Sendable private func outcome(_ request: Request, _ context: RouteContext) async throws -> Response {
        let (id, record) = try await message(context)
        return Response(status: .ok, json: MessageBody(id, record))
    }

    @Sendable private func outcomeForSender(_ request: Request, _ context: RouteContext) async throws -> Response {
        let key = try await domain.keys.authorize(bearer: request.bearer, as: [.sender, .admin])
        let (id, record) = try await message(context)
        if let app = key.app, try await domain.apps.serial(of: app) != record.app { throw Self.unknown }
        var body = MessageBody(id, record)
        let pushes = try await domain.pushes.pushes(for: id, of: record.device, at: domain.time.now())
        body.pushes = pushes.map { push in
            PushBody(push, isConfigured: push.queue.map(domain.gateways.isConfigured) ?? true)
        }
        return Response(status: .ok, json: body)
    }

    @Sendable private func cancel(_ request: Request, _ context: RouteContext) async throws -> Response {
        let (id, record) = try await message(context)
        if record.finalOutcome?.outcome == .cancelled { return Response(status: .noContent) }
        guard try await domain.home.cancel(id, of: record.device) else {
            let outcome = try await domain.home.record(of: id)?.finalOutcome?.outcome
            throw Refusal(
                .messageFinal, "The message is no longer waiting; its outcome is \(outcome?.rawValue ?? "no longer stored")."
            )
        }
        return Response(status: .noContent)
    }

    /// - Throws: ``HomeFault/moved(to:)`` if another home has the message.
    private func message(_ context: RouteContext) async throws -> (MessageID, MessageRecord) {
        guard let id = MessageID(try context.parameters.require("id")) else { throw Self.unknown }
        guard let record = try await domain.home.record(of: id) else {
            try domain.home.checkHas(Shard(of: id.position))
            throw Self.unknown
        }
        // The position of a message from before positions had shards can determine another home than that of the device.
        try domain.home.checkHas(record.device)
        return (id, record)
    }

    private static let unknown = Refusal(
        .messageUnknown, "There is no such message, or its outcome is no longer stored.")
}

extension MessageBody {
    init(_ id: MessageID, _ record: MessageRecord) {
        self.init(
            id: id.description,
            state: record.finalOutcome == nil ? "waiting" : "final",
            outcome: record.finalOutcome?.outcome.rawValue,
            code: record.finalOutcome?.code,
            acceptedAt: Timestamp3339.text(record.acceptedAt.milliseconds),
            expiresAt: Timestamp3339.text(record.expiresAt.milliseconds),
            finalAt: record.finalOutcome.map { Timestamp3339.text($0.at.milliseconds) })
    }
}
