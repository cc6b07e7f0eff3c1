import CarillonCore
import CarillonWire
import HTTPTypes
import Hummingbird
import NIOCore

/// A device's inbox without a socket: by long poll or as server-sent events, and what the device says of envelopes.
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
        let max = try request.number("max", in: 1...Limits.pollEnvelopes, default: 100)
        let poll = InboxPoll(domain: domain, readiness: readiness)
        return try await poll.answer(
            .init(device: device.serial, max: max, version: version), waitSeconds: wait, in: context)
    }

    // MARK: Server-sent events

    /// Whether a request for the inbox wants an event stream.
    static func isStream(_ request: Request) -> Bool {
        request.headers[.accept]?.contains("text/event-stream") == true
    }

    private func stream(_ device: Device, _ version: Int) -> Response {
        let (home, time) = (domain.homes.home(of: device.serial), domain.time)
        let window = settings.window
        let readiness = readiness
        let body = ResponseBody { writer in
            let feed = InboxFeed(of: device, home: home, time: time, limits: window, version: version)
            defer { feed.finish() }
            await feed.begin()
            // One that began while the sessions were being ended was not told.
            if readiness.isStopping { feed.end(because: .serverStops) }
            // Ends with the stream: a peer that went away is noticed by the write that fails.
            let keepAlive = Task {
                while !Task.isCancelled {
                    try await Task.sleep(for: .seconds(20))
                    feed.keepAlive()
                }
            }
            defer { keepAlive.cancel() }
            writing: for await batch in feed.batches {
                for item in batch.items {
                    if case .envelope(let envelope) = item {
                        if feed.isWanted(envelope) {
                            try await writer.write(ByteBuffer(bytes: Self.event(item, at: time.now())))
                        }
                        feed.done(with: envelope)
                        continue
                    }
                    try await writer.write(ByteBuffer(bytes: Self.event(item, at: time.now())))
                    if item.isLast { break writing }
                }
            }
            try await writer.finish(nil)
        }
        return Response(
            status: .ok, headers: [.contentType: "text/event-stream", .cacheControl: "no-store"], body: body)
    }

    private static func event(_ item: InboxFeed.Item, at now: Timestamp) -> [UInt8] {
        switch item {
        case .envelope(let envelope):
            let frame = ServerFrame(envelope).written(at: now.milliseconds)
            return Array("event: \(frame.typeName)\nid: \(envelope.id)\ndata: ".utf8) + frame.text + Array("\n\n".utf8)
        case .caughtUp: return Array("event: caughtUp\ndata: ".utf8) + ServerFrame.caughtUp.text + Array("\n\n".utf8)
        case .keepAlive: return Array(": \n\n".utf8)
        case .ended(let reason): return Array("event: end\ndata: {\"reason\":\"\(reason)\"}\n\n".utf8)
        // It ends without a word, and the device comes back.
        case .failed: return []
        }
    }

    // MARK: Results

    @Sendable private func takeResults(_ request: Request, _ context: RouteContext) async throws -> Response {
        let device = try await domain.device(request, context)
        let results = try await request.decode(InboxResults.self).results
        guard results.count <= Limits.resultsPerRequest else {
            throw Refusal(.fieldInvalid, "At most \(Limits.resultsPerRequest) results may come at once.")
        }
        let answers = try results.compactMap(Self.read)
        try await domain.home.settle(answers, device: device.serial)
        return Response(status: .noContent)
    }

    /// Nil for `deferred`, which leaves the envelope where it is, and for an identifier that is none of ours.
    private static func read(_ item: InboxResults.Item) throws(Refusal) -> EnvelopeAnswer? {
        let outcome: Outcome
        switch item.result {
        case "acknowledged": outcome = .acknowledged
        case "failed": outcome = .failed
        case "unsupported": outcome = .unsupported
        case "deferred": return nil
        default:
            throw Refusal(.fieldInvalid, "A result is acknowledged, failed, unsupported or deferred.")
        }
        return MessageID(item.version).map { EnvelopeAnswer($0, outcome, code: item.code) }
    }
}
