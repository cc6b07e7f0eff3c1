import CarillonWire
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import CarillonClient

/// A call ends at its deadline, whichever step it waits for. The tests run alone, because they measure time.
@Suite(.timeLimit(.minutes(5)))
struct DeadlineTests {
    /// The reasons that delay the result of a call.
    enum Obstacle: CaseIterable {
        case noRegistration
        case noServer
        case silentServer
        case noProvider
        case stalledUpload
        case lostUploads
        case unansweredRequest
        case noResult
    }

    #if CARILLON_SANITIZED
        private static let bound = Duration.seconds(5)
    #else
        /// A call of one second ends within 250 ms after it.
        private static let bound = Duration.milliseconds(1250)
    #endif

    /// Makes a call of one second and measures how long it lasts, up to nine times: the machine can be busy during some of them.
    /// Returns the shortest time.
    @discardableResult
    private static func expectEnd(_ call: (_ attempt: Int) async throws -> Void) async -> Duration {
        var shortest = Duration.seconds(3600)
        for attempt in 1...9 where shortest >= bound {
            let begun = ContinuousClock.now
            var code: ServiceError.Code?
            do { try await call(attempt) } catch { code = (error as? ServiceError)?.code }
            shortest = min(shortest, begun.duration(to: .now))
            #expect(code == .deadlineExceeded)
        }
        #expect(shortest < bound, "\(shortest)")
        return shortest
    }

    /// Waits an hour, also in a task that is cancelled.
    private static func hang() async {
        await Task { try? await Task.sleep(for: .seconds(3600)) }.value
    }

    @Test(arguments: Obstacle.allCases)
    func `a call ends at its deadline, and leaves nothing`(_ obstacle: Obstacle) async throws {
        let consumer = try await ServiceEngineFixture(isRegistered: obstacle != .noRegistration)
        let provider = try await ServiceEngineFixture("com.example.files", number: 2)
        consumer.web.takeUploads()
        consumer.takeRequests()
        if obstacle != .noRegistration { try await consumer.find(provider) }
        let isThere = Mutex(false)
        switch obstacle {
        case .noRegistration, .noResult: break
        case .noServer: consumer.web.on("GET /v1/services") { _ in nil }
        case .silentServer:
            consumer.web.on("GET /v1/services") { _ in
                await Self.hang()
                return nil
            }
        case .noProvider: consumer.web.on("GET /v1/services", 503)
        case .stalledUpload:
            consumer.web.onFile("PATCH") { _ in
                try await Task.sleep(for: .seconds(3600))
                throw TransportFault(.timeOut, nil)
            }
        case .lostUploads:
            consumer.web.onFile("PATCH") { _ in throw TransportFault(.unreachable, nil) }
            consumer.web.onFile("DELETE") { _ in
                guard isThere.withLock(\.self) else { throw TransportFault(.unreachable, nil) }
                return WebAnswer(status: 204, headers: ["carillon-server": ScriptedWeb.server])
            }
        case .unansweredRequest: consumer.web.on("POST /v1/services/requests") { _ in nil }
        }
        let path = try consumer.file("a.txt")
        let lasted = await Self.expectEnd { _ in
            _ = try await consumer.client.call(
                ServiceEngineFixture.method, of: .init(app: "com.example.files"),
                .string(String(repeating: "x", count: 50_000)),
                attachments: [path], deadline: .seconds(1))
        }
        #expect(lasted >= .seconds(1), "\(lasted)")
        let (box, files) = await (consumer.engine.box, consumer.engine.files.attachments)
        try await eventually { try await box.unsent(at: ServiceEngine.now).isEmpty }
        try await eventually { try files.uploads().isEmpty }
        switch obstacle {
        case .stalledUpload:
            try await eventually { consumer.web.asked.contains("DELETE /v1/attachments/1") }
        case .lostUploads:
            // The first attempt fails; the request is repeated when the server is running.
            try await eventually { consumer.web.asked.contains("DELETE /v1/attachments/1") }
            isThere.withLock { $0 = true }
            try await eventually { consumer.web.asked.count { $0 == "DELETE /v1/attachments/1" } > 1 }
        case .unansweredRequest, .noResult:
            try await eventually { consumer.web.asked.contains { $0.hasPrefix("DELETE /v1/services/requests/") } }
            // The file, and the parameters, which are too long for an envelope.
            for number in 1...2 {
                try await eventually { consumer.web.asked.contains("DELETE /v1/attachments/\(number)") }
            }
        case .noRegistration, .noServer, .silentServer, .noProvider: break
        }
    }

    @Test func `a request to come to the front and one without a wait end at their deadline`() async throws {
        let consumer = try await ServiceEngineFixture()
        for (digit, method) in [("a", ServiceMethod.frontRequest), ("b", ServiceEngineFixture.method)] {
            await Self.expectEnd { attempt in
                let call = ServiceCall(
                    id: String(repeating: digit, count: 31) + String(attempt), method: method,
                    to: .init(app: "com.example.files"), parameters: nil, attachments: [], deadline: .seconds(1),
                    foreground: .none)
                try await consumer.engine.send(call, result: nil)
            }
        }
    }

    @Test func `a provider has the seconds that are left, rounded up`() {
        func left(_ duration: Duration) -> Int64 {
            ServiceCall(
                id: "", method: ServiceEngineFixture.method, to: .init(app: ""), parameters: nil, attachments: [],
                deadlineSeconds: 60, foreground: .none, ends: .now + duration
            ).remainingSeconds
        }
        #expect(left(.seconds(60)) == 60)
        #expect(left(.milliseconds(2500)) == 3)
        #expect(left(.milliseconds(200)) == 1)
        #expect(left(.seconds(-5)) == 1)
        let longest = ServiceCall(
            id: "", method: ServiceEngineFixture.method, to: .init(app: ""), parameters: nil, attachments: [],
            deadline: .seconds(Int64.max), foreground: .none)
        #expect(ContinuousClock.now.duration(to: longest.ends) <= .seconds(RequestHeader.longestDeadlineSeconds))
    }

    /// The server's answer about a request that it may have accepted; nil: it was cancelled.
    @Test(arguments: [nil, .requestUnknown, .alreadyDelivered, .requestFinished] as [ErrorCode?])
    func `a request that a former run left is cancelled after its deadline, and a result that the server has is kept`(
        _ refusal: ErrorCode?
    ) async throws {
        let consumer = try await ServiceEngineFixture()
        let id = String(repeating: "b", count: 32)
        let call = StoredCall(
            id: id, app: "com.example.files", device: String(repeating: "2", count: 32), service: "com.example.x",
            version: "1", method: "m", deadlineSeconds: 3600, foreground: "none", key: "k", hash: Data([1]),
            attachments: [], parameters: "null", files: [], until: ServiceEngine.now - 1000)
        let box = await consumer.engine.box
        try await box.save(call, body: [1], claiming: [], keptUntil: ServiceEngine.now + 1_000_000)
        #expect(try await box.call(id) == call)
        consumer.takeRequests()
        if let refusal { try consumer.web.refuse("DELETE /v1/services/requests/", refusal) }
        var events = consumer.client.events.makeAsyncIterator()
        await consumer.engine.sendUnsent()
        #expect(consumer.web.asked.contains("DELETE /v1/services/requests/\(id)"))
        #expect(consumer.web.bodies("POST").isEmpty)
        #expect(try await box.unsent(at: ServiceEngine.now).isEmpty)
        if refusal == .alreadyDelivered || refusal == .requestFinished {
            #expect(try await box.call(id) == call, "an event ends it")
            return
        }
        guard case .didReceive(_, .failure(let error), let ended)? = await events.next(), ended == id else {
            Issue.record("another event came")
            return
        }
        #expect(error.code == .deadlineExceeded)
        #expect(try await box.call(id) == nil)
    }

    @Test func `a reply whose files do not reach the server ends at the deadline, and leaves no file`() async throws {
        let consumer = try await ServiceEngineFixture()
        let provider = try await ServiceEngineFixture("com.example.files", number: 2)
        try await consumer.find(provider)
        consumer.takeRequests()
        let call = ServiceCall(
            id: String(repeating: "c", count: 32), method: ServiceEngineFixture.method, to: .init(app: "com.example.files"),
            parameters: nil, attachments: [], deadline: .seconds(12), foreground: .none)
        try await consumer.engine.send(call, result: nil)
        let request = try #require(try consumer.postedRequests().first)
        let path = try provider.file("b.txt")
        provider.web.takeUploads()
        provider.web.onFile("PATCH") { _ in
            try await Task.sleep(for: .seconds(3600))
            throw TransportFault(.timeOut, nil)
        }
        await provider.provider.handle(ServiceEngineFixture.method) { _ in ServiceReply(attachments: [path]) }
        try await provider.receive(request)
        let run = Task { await provider.engine.run() }
        try await eventually { provider.web.asked.contains { $0.hasPrefix("PATCH") } }
        try await eventually { provider.web.asked.contains("DELETE /v1/attachments/1") }
        let (box, files) = await (provider.engine.box, provider.engine.files.attachments)
        try await eventually { try await box.events(after: 0, at: 1, limit: 1).events.isEmpty }
        try await eventually { try files.uploads().isEmpty }
        #expect(try provider.postedReplies().isEmpty)
        run.cancel()
        await run.value
    }
}
