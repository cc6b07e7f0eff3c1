import CarillonCore
import CarillonWire
import HTTPTypes
import Hummingbird
import NIOCore

/// A device's inbox without a socket: by long poll or as server-sent events, and what the device says of envelopes.
struct InboxRoutes: Sendable {
    let domain: Domain
    let settings: ServerSettings
    let readiness: Readiness

    func add(to routes: Routes) {
        routes.on(.get, "/v1/inbox", read)
        routes.on(.post, "/v1/inbox/results", takeResults)
    }

    @Sendable private func read(_ request: Request, _ context: RouteContext) async throws -> Response {
        let device = try await domain.devices.authenticate(bearer: request.bearer)
        let version = try request.number("carillon", in: 1...CarillonVersion.ofExtension, default: 1)
        if request.headers[.accept]?.contains("text/event-stream") == true { return stream(device.serial, version) }
        let wait = try request.number("wait", in: 0...Limits.pollWaitSeconds, default: 0)
        let max = try request.number("max", in: 1...Limits.pollEnvelopes, default: 100)
        return try await poll(device.serial, waitSeconds: wait, max: max, version)
    }

    // MARK: Long poll

    private func poll(_ device: DeviceSerial, waitSeconds: Int, max: Int, _ version: Int) async throws -> Response {
        let limits = DeliveryMachine.Limits(
            envelopes: max, bytes: Self.pollBytes, outputBytes: Self.pollBytes, lookAhead: 1)
        let feed = InboxFeed(
            .poll, of: device, home: domain.homes.home(of: device), time: domain.time, limits: limits, version: version)
        feed.begin()
        defer { feed.finish() }
        var isTimeUp = waitSeconds == 0 || !readiness.isReady
        var hasLooked = false
        // Ends with the poll.
        let clock =
            isTimeUp
            ? nil
            : Task {
                try await Task.sleep(for: .seconds(waitSeconds))
                feed.timeIsUp()
            }
        defer { clock?.cancel() }
        for await batch in feed.batches {
            var envelopes: [Envelope] = []
            for item in batch.items {
                switch item {
                case .envelope(let envelope): envelopes.append(envelope)
                case .looked: hasLooked = true
                case .caughtUp, .keepAlive: break
                case .ended(.deviceGone): throw DeviceRegistrar.credentialInvalid
                case .ended, .timeIsUp: isTimeUp = true
                case .failed(let fault): throw fault
                }
            }
            if !envelopes.isEmpty { return await Self.page(envelopes, more: batch.moreWaits) }
            if isTimeUp, hasLooked { break }
        }
        return await Self.page([], more: false)
    }

    private static let pollBytes = 4 << 20
    private static let stepBytes = 64 << 10

    /// `{"envelopes":[…],"more":…}`, each envelope as the frame that a socket would carry.
    private static func page(_ envelopes: [Envelope], more: Bool) async -> Response {
        var text = Array(#"{"envelopes":["#.utf8)
        var written = 0
        for (index, envelope) in envelopes.enumerated() {
            if index > 0 { text.append(UInt8(ascii: ",")) }
            text += ServerFrame(envelope).text
            // The event loop has others to serve.
            if text.count - written > stepBytes {
                written = text.count
                await Task.yield()
            }
        }
        text += Array(#"],"more":\#(more)}"#.utf8)
        return Response(status: .ok, text: text, type: "application/json")
    }

    // MARK: Server-sent events

    private func stream(_ device: DeviceSerial, _ version: Int) -> Response {
        let (home, time) = (domain.homes.home(of: device), domain.time)
        let window = settings.window
        let readiness = readiness
        let body = ResponseBody { writer in
            let feed = InboxFeed(.stream, of: device, home: home, time: time, limits: window, version: version)
            feed.begin()
            // One that began while the sessions were being ended was not told.
            if !readiness.isReady { feed.end(because: .serverStops) }
            // Ends with the stream: a peer that went away is noticed by the write that fails.
            let keepAlive = Task {
                while !Task.isCancelled {
                    try await Task.sleep(for: .seconds(20))
                    feed.keepAlive()
                }
            }
            defer {
                keepAlive.cancel()
                feed.finish()
            }
            writing: for await batch in feed.batches {
                for item in batch.items {
                    if case .envelope(let envelope) = item {
                        if feed.isWanted(envelope) { try await writer.write(ByteBuffer(bytes: Self.event(item))) }
                        feed.done(with: envelope)
                        continue
                    }
                    try await writer.write(ByteBuffer(bytes: Self.event(item)))
                    if item.isLast { break writing }
                }
            }
            try await writer.finish(nil)
        }
        return Response(
            status: .ok, headers: [.contentType: "text/event-stream", .cacheControl: "no-store"], body: body)
    }

    private static func event(_ item: InboxFeed.Item) -> [UInt8] {
        switch item {
        case .envelope(let envelope):
            let frame = ServerFrame(envelope)
            return Array("event: \(frame.typeName)\nid: \(envelope.id)\ndata: ".utf8) + frame.text + Array("\n\n".utf8)
        case .caughtUp: return Array("event: caughtUp\ndata: ".utf8) + ServerFrame.caughtUp.text + Array("\n\n".utf8)
        case .keepAlive: return Array(": \n\n".utf8)
        case .ended(let reason): return Array("event: end\ndata: {\"reason\":\"\(reason)\"}\n\n".utf8)
        // It ends without a word, and the device comes back.
        case .failed, .timeIsUp, .looked: return []
        }
    }

    // MARK: Results

    @Sendable private func takeResults(_ request: Request, _ context: RouteContext) async throws -> Response {
        let device = try await domain.devices.authenticate(bearer: request.bearer)
        let results = try await request.decode(InboxResults.self).results
        guard results.count <= Limits.resultsPerRequest else {
            throw Refusal(.fieldInvalid, "At most \(Limits.resultsPerRequest) results may come at once.")
        }
        let settled = try results.compactMap(Self.read)
        let home = domain.homes.home(of: device.serial)
        for (id, outcome, code) in settled {
            home.inbox.settle(id, device: device.serial, outcome, code: code)
        }
        home.sessions.session(of: device.serial)?.settled(settled.map(\.0))
        await home.inbox.flush(device.serial)
        return Response(status: .noContent)
    }

    /// Nil for `deferred`, which leaves the envelope where it is, and for an identifier that is none of ours.
    private static func read(_ item: InboxResults.Item) throws(Refusal) -> (MessageID, Outcome, Int?)? {
        let outcome: Outcome
        switch item.result {
        case "acknowledged": outcome = .acknowledged
        case "failed": outcome = .failed
        case "unsupported": outcome = .unsupported
        case "deferred": return nil
        default:
            throw Refusal(.fieldInvalid, "A result is acknowledged, failed, unsupported or deferred.")
        }
        return MessageID(item.version).map { ($0, outcome, item.code) }
    }
}
