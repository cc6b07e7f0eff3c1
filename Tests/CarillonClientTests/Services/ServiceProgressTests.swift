import CarillonWire
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import CarillonClient

/// The events of a request before its result: its arrival, and the progress of its files; and the early end of a request.
@Suite(.timeLimit(.minutes(5)))
struct ServiceProgressTests {
    private let address = ServiceApplication(app: "com.example.files")

    private func pair() async throws -> (consumer: ServiceEngineFixture, provider: ServiceEngineFixture) {
        let consumer = try await ServiceEngineFixture()
        let provider = try await ServiceEngineFixture("com.example.files", number: 2)
        try await consumer.find(provider)
        consumer.takeRequests()
        consumer.web.takeUploads()
        provider.takeRequests()
        return (consumer, provider)
    }

    private func call(_ attachments: [String] = [], id: String = String(repeating: "d", count: 32)) -> ServiceCall {
        ServiceCall(
            id: id, method: ServiceEngineFixture.method, to: address, parameters: 7, attachments: attachments,
            deadline: .seconds(50), foreground: .none)
    }

    /// Brings a request to its provider and the reply back. Returns the events of the consumer, up to the result.
    private func exchange(
        _ consumer: ServiceEngineFixture, _ provider: ServiceEngineFixture, received: Bool = false
    ) async throws -> [ServiceClientEvent] {
        var events = consumer.client.events.makeAsyncIterator()
        try await consumer.engine.send(call(), result: nil)
        try await provider.receive(try #require(try consumer.postedRequests().first))
        let runs = [consumer, provider].map { fixture in Task { await fixture.engine.run() } }
        try await eventually { try !provider.postedReplies().isEmpty }
        if received {
            let id = try #require(ServiceRequestID(call().id))
            try await consumer.receive(.received(id))
        }
        try await consumer.receive(try #require(try provider.postedReplies().first))
        var heard: [ServiceClientEvent] = []
        while let event = await events.next() {
            heard.append(event)
            if case .didReceive = event { break }
        }
        for run in runs {
            run.cancel()
            await run.value
        }
        return heard
    }

    private func arrivals(_ events: [ServiceClientEvent]) -> Int {
        events.count { if case .didFinishSending = $0 { true } else { false } }
    }

    private func code(_ events: [ServiceClientEvent]) -> ServiceError.Code? {
        guard case .didReceive(_, .failure(let error), _)? = events.last else { return nil }
        return error.code
    }

    // MARK: Arrival

    @Test func `a request that its provider refused did not arrive`() async throws {
        for isDisabled in [false, true] {
            let (consumer, provider) = try await pair()
            if isDisabled {
                await provider.provider.handle(ServiceEngineFixture.method) { _ in ServiceReply() }
                await provider.provider.setService(ServiceEngineFixture.method.service, isDisabled: true)
            }
            let heard = try await exchange(consumer, provider)
            #expect(code(heard) == (isDisabled ? .serviceDisabled : .serviceNotFound))
            #expect(arrivals(heard) == 0)
        }
    }

    @Test func `a result proves that the request arrived, and so does the error of a handler`() async throws {
        let errors: [ServiceError?] = [nil, ServiceError(number: 7, "no room"), ServiceError(.providerLocked, "locked")]
        for error in errors {
            let (consumer, provider) = try await pair()
            await provider.provider.handle(ServiceEngineFixture.method) { _ in
                if let error { throw error }
                return ServiceReply()
            }
            let heard = try await exchange(consumer, provider)
            #expect(code(heard) == error?.code)
            #expect(arrivals(heard) == 1)
            guard case .didFinishSending(_, _, let parameters, let id)? = heard.first else {
                Issue.record("it is not reported before the result")
                return
            }
            #expect(parameters == 7 && id == call().id)
        }
    }

    /// The error is the handler's, or the library finds that the file of the reply is not there.
    @Test(arguments: [false, true])
    func `an ambiguous error is reported after the confirmation that the request arrived`(
        isOfHandler: Bool
    ) async throws {
        for isBrought in [false, true] {
            let (consumer, provider) = try await pair()
            await provider.provider.handle(ServiceEngineFixture.method) { _ in
                if isOfHandler { throw ServiceError(.attachmentMissing, "none") }
                return ServiceReply(attachments: ["/nowhere/file"])
            }
            let heard = try await exchange(consumer, provider, received: isBrought)
            #expect(code(heard) == .attachmentMissing)
            #expect(arrivals(heard) == (isBrought ? 1 : 0))
            let path = "POST /v1/services/requests/\(call().id)/"
            let words = provider.web.asked.filter { $0.hasPrefix(path) }
            #expect(words.first == path + "received" && words.last == path + "reply")
        }
    }

    // MARK: Cancelling

    @Test func `a request can be cancelled before it is sent`() async throws {
        let (consumer, _) = try await pair()
        let id = consumer.client.makeRequestID()
        #expect(try await consumer.client.cancel(id))
        let error = await #expect(throws: ServiceError.self) {
            _ = try await consumer.client.call(ServiceEngineFixture.method, of: address, id: id)
        }
        #expect(error?.code == .cancelled)
        let unknown = await #expect(throws: ServiceError.self) { _ = try await consumer.client.cancel(id) }
        #expect(unknown?.code == .requestUnknown)
        #expect(consumer.web.asked.isEmpty)
    }

    @Test(arguments: [false, true]) func `a request can be cancelled while its files are sent`(byTask: Bool) async throws {
        let (consumer, _) = try await pair()
        let patches = Mutex(0)
        consumer.web.onFile("PATCH") { _ in
            // The first file arrives, and the second does not.
            let isFirst = patches.withLock { count in
                count += 1
                return count == 1
            }
            if !isFirst { try await Task.sleep(for: .seconds(3600)) }
            return WebAnswer(
                status: 200, headers: [:], body: Data(#"{"id":"1","expiresAt":"2099-01-31T12:00:00.000Z"}"#.utf8))
        }
        let paths = try ["a.txt", "b.txt"].map { try consumer.file($0) }
        let id = consumer.client.makeRequestID()
        let sending = Task {
            try await consumer.client.send(ServiceEngineFixture.method, to: address, attachments: paths, id: id)
        }
        try await eventually { patches.withLock { $0 } == 2 }
        if byTask {
            sending.cancel()
            await #expect(throws: CancellationError.self) { try await sending.value }
        } else {
            #expect(try await consumer.client.cancel(id))
            let error = await #expect(throws: ServiceError.self) { try await sending.value }
            #expect(error?.code == .cancelled)
        }
        for number in 1...2 {
            try await eventually { consumer.web.asked.contains("DELETE /v1/attachments/\(number)") }
        }
        let files = await consumer.engine.files.attachments
        try await eventually { try files.uploads().isEmpty }
        #expect(consumer.web.bodies("POST /v1/services").isEmpty, "no request was sent")
    }

    @Test func `a request can be cancelled while the server does not answer`() async throws {
        let (consumer, _) = try await pair()
        consumer.web.on("POST /v1/services/requests") { _ in nil }
        let id = consumer.client.makeRequestID()
        let calling = Task { try await consumer.client.call(ServiceEngineFixture.method, of: address, id: id) }
        try await eventually { !consumer.web.bodies("POST /v1/services/requests").isEmpty }
        #expect(try await consumer.client.cancel(id))
        let error = await #expect(throws: ServiceError.self) { _ = try await calling.value }
        #expect(error?.code == .cancelled)
        // The server may have it all the same.
        try await eventually { consumer.web.asked.contains("DELETE /v1/services/requests/\(id)") }
        let box = await consumer.engine.box
        #expect(try await box.call(id) == nil)
    }

    @Test func `a request that was cancelled while the server is away is taken back by the next run`() async throws {
        let fixture = try await ServiceEngineFixture()
        let (id, box) = (ServiceEngineFixture.id(1), fixture.box)
        var call = ServiceEngineFixture.call(id)
        call.files = ["7"]
        try await box.save(call, body: [1], claiming: [], keptUntil: ServiceEngine.now + 1_000_000)
        await fixture.engine.withdraw(call)
        try await eventually { !fixture.web.asked.isEmpty }
        #expect(try await box.call(id) == nil)
        #expect(try await box.withdrawnCalls().map(\.id) == [id])
        #expect(try await box.unsent(at: ServiceEngine.now).isEmpty)
        let task = try #require(await fixture.engine.outgoing.withdrawals[id])
        await #expect(throws: ServiceError.self) {
            try await fixture.engine.send(
                ServiceCall(
                    id: id, method: ServiceEngineFixture.method, to: address, parameters: nil, attachments: [],
                    deadline: .seconds(50), foreground: .none), result: nil)
        }
        // The process ends.
        task.cancel()
        await task.value
        try await eventually { await fixture.engine.outgoing.withdrawals.isEmpty }
        #expect(try await box.withdrawnCalls().map(\.id) == [id])
        fixture.web.on("DELETE", 204)
        try await fixture.running { try await eventually { try await box.withdrawnCalls().isEmpty } }
        let asked = fixture.web.asked
        #expect(asked.suffix(2) == ["DELETE /v1/services/requests/\(id)", "DELETE /v1/attachments/7"])
        #expect(try await box.results().isEmpty, "no call waits for a result")
    }

    @Test func `the files of a request that was sent are removed from the server when it is cancelled`() async throws {
        let fixture = try await ServiceEngineFixture()
        let (id, box) = (ServiceEngineFixture.id(1), fixture.box)
        var call = ServiceEngineFixture.call(id)
        call.files = ["7"]
        try await box.save(call, body: [1], claiming: [], keptUntil: ServiceEngine.now + 1_000_000)
        try await box.sent(id)
        fixture.web.on("DELETE", 204)
        #expect(try await fixture.client.cancel(id))
        try await eventually { fixture.web.asked.contains("DELETE /v1/attachments/7") }
        #expect(try await box.call(id) == nil)
    }

    @Test func `a cancelled call does not keep the engine`() async throws {
        weak var engine: ServiceEngine?
        do {
            let fixture = try await ServiceEngineFixture()
            let id = try await fixture.ask(1)
            await fixture.engine.withdraw(ServiceEngineFixture.call(id))
            let web = fixture.web
            try await eventually { !web.asked.isEmpty }
            engine = fixture.engine
            #expect(engine != nil)
        }
        for _ in 0..<10_000 where engine != nil { try await Task.sleep(for: .milliseconds(5)) }
        #expect(engine == nil)
    }

    @Test func `all requests to an install are cancelled, also pending ones`() async throws {
        let (consumer, provider) = try await pair()
        consumer.web.on("POST /v1/services/requests") { _ in nil }
        let to = ServiceApplication(app: provider.peer.app, device: provider.peer.device)
        let sending = Task { try await consumer.client.send(ServiceEngineFixture.method, to: to) }
        try await eventually { !consumer.web.bodies("POST /v1/services/requests").isEmpty }
        consumer.web.on("DELETE /v1/services/requests?", 200, #"{"cancelled":[]}"#)
        #expect(try await consumer.client.cancelAll(to: to) == 1)
        let error = await #expect(throws: ServiceError.self) { try await sending.value }
        #expect(error?.code == .cancelled)
    }

    @Test func `a request to an app is cancelled with all to its install, while its file is sent`() async throws {
        let (consumer, provider) = try await pair()
        consumer.web.onFile("PATCH") { _ in
            try await Task.sleep(for: .seconds(3600))
            throw TransportFault(.timeOut, nil)
        }
        let path = try consumer.file("a.txt")
        let sending = Task { try await consumer.client.send(ServiceEngineFixture.method, to: address, attachments: [path]) }
        try await eventually { consumer.web.asked.contains { $0.hasPrefix("PATCH") } }
        consumer.web.on("DELETE /v1/services/requests?", 200, #"{"cancelled":[]}"#)
        let another = ServiceApplication(app: provider.peer.app, device: String(repeating: "3", count: 32))
        #expect(try await consumer.client.cancelAll(to: another) == 0)
        let to = ServiceApplication(app: provider.peer.app, device: provider.peer.device)
        #expect(try await consumer.client.cancelAll(to: to) == 1)
        let error = await #expect(throws: ServiceError.self) { try await sending.value }
        #expect(error?.code == .cancelled)
    }

    @Test func `an id is for one request`() async throws {
        let (consumer, _) = try await pair()
        let id = try await consumer.client.send(
            ServiceEngineFixture.method, to: address, id: String(repeating: "e", count: 32))
        for wrong in [id, "", "x", String(repeating: "E", count: 32)] {
            let error = await #expect(throws: ServiceError.self) {
                _ = try await consumer.client.send(ServiceEngineFixture.method, to: address, id: wrong)
            }
            #expect(error?.code == .fieldInvalid, "\(wrong)")
        }
        #expect(try consumer.postedRequests().count == 1)
    }

    // MARK: Bytes

    private func isOver(_ progress: AsyncStream<ServiceProgress>) async -> Bool {
        for await _ in progress {}
        return true
    }

    @Test func `the progress of a request that was cancelled before it began has ended`() async throws {
        let (consumer, _) = try await pair()
        let id = consumer.client.makeRequestID()
        let early = consumer.client.progress(of: id)
        #expect(try await consumer.client.cancel(id))
        #expect(await isOver(early))
        #expect(await isOver(consumer.client.progress(of: id)), "it was cancelled before")
    }

    @Test func `the progress of an id that no request has ends at once`() async throws {
        let (consumer, provider) = try await pair()
        let id = String(repeating: "f", count: 32)
        #expect(await isOver(consumer.client.progress(of: id)))
        #expect(await isOver(provider.provider.progress(of: id)))
    }

    @Test func `the progress of requests of the former user ends`() async throws {
        let fixture = try await ServiceEngineFixture()
        try await fixture.become("ada")
        try await eventually { await fixture.engine.owner.user == "ada" }
        // The server has it.
        let id = try await fixture.ask(1)
        let progress = await fixture.engine.clientProgress.stream(of: id)
        try await fixture.become("bob")
        #expect(await isOver(progress))
    }

    @Test func `an app receives the progress of its files, up to the end`() async throws {
        let (consumer, _) = try await pair()
        let paths = try ["a.bin", "b.bin"].map { try consumer.file($0, bytes: 100_000) }
        let total = 2 * ChunkSeal.sealedLength(of: 100_000)
        let id = consumer.client.makeRequestID()
        let progress = consumer.client.progress(of: id)
        let last = Task {
            var last: ServiceProgress?
            for await present in progress { last = present }
            return last
        }
        var events = consumer.client.events.makeAsyncIterator()
        let calling = Task {
            try await consumer.client.call(ServiceEngineFixture.method, of: address, attachments: paths, id: id)
        }
        var heard: [Int64] = []
        while heard.last != total, let event = await events.next() {
            guard case .sending(let told, let bytes, let all) = event else { continue }
            #expect(told == id && all == total)
            heard.append(bytes)
        }
        #expect(heard == heard.sorted() && heard.last == total)
        calling.cancel()
        await #expect(throws: CancellationError.self) { _ = try await calling.value }
        // The iteration ends with the request.
        let whole = await last.value
        #expect(whole == ServiceProgress(.sending, completedBytes: total, totalBytes: total))
        #expect(whole?.fractionCompleted == 1)
    }
}
