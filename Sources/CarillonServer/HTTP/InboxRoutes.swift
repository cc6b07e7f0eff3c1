import CarillonCore
import CarillonWire
import HTTPTypes
import Hummingbird

/// The routes of a device's inbox without a socket: long poll, server-sent events, and results of envelopes.
struct InboxRoutes: Sendable {
    let domain: HomeDomain
    let settings: ServerSettings
    let readiness: Readiness

    static let path = "/v1/inbox"

    func add(to routes: Routes) {
        routes.on(.get, RouterPath(Self.path), query: ["carillon", "max", "wait"], read)
        routes.on(.post, "/v1/inbox/results", takeResults)
    }

    @Sendable private func read(_ request: Request, _ context: RouteContext) async throws -> Response {
        let isStream = Self.isStream(request)
        // The home of the stream's device marks the device as seen when the stream arrives.
        let device = try await isStream ? domain.deviceOfAnyHome(request, context) : domain.device(request, context)
        let version = try request.number("carillon", in: 1...CarillonVersion.ofExtension, default: 1)
        if isStream { return stream(device, version) }
        let wait = try request.number("wait", in: 0...Limits.pollWaitSeconds, default: 0)
        let max = try request.number("max", in: 1...Limits.pollEnvelopes, default: Limits.defaultPollEnvelopes)
        let poll = InboxPoll(domain: domain, readiness: readiness)
        return try await poll.answer(
            .init(device: device.serial, max: max, version: version), waitSeconds: wait, in: context)
    }

    // MARK: Server-sent events

    /// Whether the client requests an event stream.
    static func isStream(_ request: Request) -> Bool {
        request.headers[.accept]?.contains("text/event-stream") == true
    }

    private func stream(_ device: Device, _ version: Int) -> Response {
        let feed = InboxFeed(
            of: device, homes: domain.homes, time: domain.time, limits: settings.window,
            version: version, logger: domain.shared.logger)
        let stream = InboxStream(feed: feed, readiness: readiness, time: domain.time)
        return Response(
            status: .ok, headers: [.contentType: "text/event-stream", .cacheControl: "no-store"],
            body: ResponseBody { writer in try await stream.run(&writer) })
    }

    // MARK: Results

    @Sendable private func takeResults(_ request: Request, _ context: RouteContext) async throws -> Response {
        let device = try await domain.device(request, context)
        let results = try await request.decode(InboxResults.self).results
        guard results.count <= Limits.resultsPerRequest else {
            throw Refusal(.fieldInvalid, "\"results\" must have at most \(Limits.resultsPerRequest) results.")
        }
        let answers = try results.compactMap(Self.read)
        try await domain.home.finish(answers, device: device.serial)
        return Response(status: .noContent)
    }

    /// Returns nil for `deferred`, which keeps the envelope in the inbox, and for an identifier that is not of this server.
    private static func read(_ item: InboxResults.Item) throws(Refusal) -> EnvelopeAnswer? {
        let outcome: Outcome
        switch item.result {
        case "acknowledged": outcome = .acknowledged
        case "failed": outcome = .failed
        case "unsupported": outcome = .unsupported
        case "deferred": return nil
        default:
            throw Refusal(.fieldInvalid, "\"result\" must be one of: acknowledged, failed, unsupported, deferred.")
        }
        return MessageID(item.version).map { EnvelopeAnswer($0, outcome, code: item.code) }
    }
}
