import Foundation
import GRDB
import Synchronization
import TestSupport
import Testing

@testable import CarillonClient

/// The limits of the calls that wait for delegates that do not return.
@Suite(.timeLimit(.minutes(5)))
struct DelegateCallsTests {
    private typealias Calls = DelegateCalls<ServiceClientEvent, String>

    private static let address = ServiceApplication(app: "com.example.files")

    private static func result(_ number: Int, bytes: Int = 0) -> ServiceClientEvent {
        .didReceive(from: address, .success(.init(.bytes(Data(count: bytes)))), id: "\(number)")
    }

    private static func step(_ number: Int) -> ServiceClientEvent {
        .didStartSending(to: address, filename: "f", id: "\(number)")
    }

    private func fill(_ calls: inout Calls, _ events: [ServiceClientEvent], isKept: Bool = false) -> [String] {
        events.flatMap { calls.append($0.brief, for: $0, isKept: isKept) }.map(\.brief)
    }

    private func drain(_ calls: inout Calls) -> [String] {
        var heard: [String] = []
        while let next = calls.next() {
            switch next {
            case .missed(let count): heard.append("missed \(count)")
            case .call(let call): heard.append(call)
            }
        }
        return heard
    }

    @Test func `events within the limit are delivered in order, and none is missed`() {
        var calls = Calls()
        calls.append("added")
        let dropped = fill(&calls, [Self.step(1), Self.result(1)])
        calls.append("removed")
        let heard = drain(&calls)
        #expect(dropped.isEmpty && heard == ["added", "step 1", "result 1", "removed"])
        #expect(calls.count == 0 && calls.bytes == 0)
    }

    @Test func `progress is dropped first, then steps, then other events, and each drop is counted once`() {
        var calls = Calls()
        _ = fill(&calls, (0..<Calls.limit - 2).map { Self.result($0) })
        let fitting = fill(&calls, [Self.step(1), .sending(id: "1", bytesSent: 1, of: 2)])
        #expect(fitting.isEmpty && calls.count == Calls.limit)
        let first = fill(&calls, [Self.result(2000)])
        #expect(first == ["sending 1: 1"])
        let second = fill(&calls, [Self.step(2)])
        #expect(second == ["step 1"])
        let third = fill(&calls, [Self.result(2001), Self.step(3), Self.result(2002)])
        #expect(third == ["step 2", "step 3", "result 0"])
        #expect(calls.count == Calls.limit)
        let heard = drain(&calls)
        #expect(heard.first == "missed 5" && heard.count == Calls.limit + 1)
        #expect(heard.suffix(3) == ["result 2000", "result 2001", "result 2002"])
        let none = drain(&calls)
        #expect(none.isEmpty)
    }

    @Test func `a result that only the delegate has is never dropped, until somebody else has it or it is removed`() {
        var calls = Calls()
        let kept = fill(&calls, (0..<3 * Calls.limit).map { Self.result($0, bytes: 10_000) }, isKept: true)
        #expect(kept.isEmpty && calls.count == 0 && calls.bytes == 0)
        let removed = calls.remove { if case .didReceive(_, _, "7") = $0 { true } else { false } }
        #expect(removed.map(\.brief) == ["result 7"])
        let few = calls.release { event in
            guard case .didReceive(_, _, let id) = event, let number = Int(id) else { return false }
            return number < 100
        }
        #expect(few.isEmpty && calls.count == 99)
        let many = calls.release { _ in true }
        #expect(!many.isEmpty && calls.count <= Calls.limit && calls.bytes <= Calls.byteLimit)
        let heard = drain(&calls)
        #expect(heard.first == "missed \(many.count)" && heard.last == "result \(3 * Calls.limit - 1)")
        #expect(heard.count - 1 + many.count + removed.count == 3 * Calls.limit)
    }

    @Test func `a result that can be dropped from now on displaces progress and steps before other events`() {
        var calls = Calls()
        _ = fill(&calls, (0..<3).map { Self.result($0) }, isKept: true)
        let events = (3..<Calls.limit + 1).map { Self.result($0) }
        let fitting = fill(&calls, events + [Self.step(1), .sending(id: "1", bytesSent: 1, of: 2)])
        #expect(fitting.isEmpty && calls.count == Calls.limit)
        let dropped = calls.release { _ in true }
        #expect(dropped.map(\.brief) == ["sending 1: 1", "step 1", "result 0"])
        #expect(calls.count == Calls.limit)
    }

    @Test func `the bytes of the content that waits are bounded, and the newest event stays`() {
        var calls = Calls()
        _ = fill(&calls, (0..<100).map { Self.result($0, bytes: 1 << 20) } + [Self.step(1)])
        #expect(calls.bytes <= Calls.byteLimit && calls.bytes > Calls.byteLimit / 2)
        let large = fill(&calls, [Self.result(100, bytes: Calls.byteLimit * 2)])
        #expect(!large.isEmpty)
        let heard = drain(&calls)
        #expect(heard == ["missed 100", "step 1", "result 100"])
    }

    @Test func `content that does not fit drops no result that only the delegate has`() {
        var calls = Calls()
        _ = fill(&calls, [Self.result(0, bytes: 1 << 20)], isKept: true)
        let dropped = fill(&calls, (1...20).map { Self.result($0, bytes: 1 << 20) })
        #expect(dropped.first == "result 1" && !dropped.contains("result 0"))
        #expect(calls.bytes <= Calls.byteLimit)
        let heard = drain(&calls)
        #expect(heard.prefix(2) == ["missed \(dropped.count)", "result 0"])
    }

    @Test func `the content that waits for an iteration is bounded, and the next event reports it`() {
        var buffer = EventBuffer<ServiceClientEvent>()
        _ = buffer.append(Self.step(1))
        for number in 0..<50 { _ = buffer.append(Self.result(number, bytes: 1 << 20)) }
        #expect(buffer.bytes <= EventBuffer<ServiceClientEvent>.byteLimit)
        #expect(buffer.count == 16, "a step, and fifteen results of a little more than 1 MiB")
        let first = buffer.next()
        #expect(first?.brief == "missed 35")
        let second = buffer.next()
        #expect(second?.brief == "step 1")
        let dropped = buffer.append(Self.result(50, bytes: EventBuffer<ServiceClientEvent>.byteLimit + 1))
        #expect(dropped.count == 15)
        #expect(buffer.count == 1)
        _ = buffer.next()
        let last = buffer.next()
        #expect(last?.brief == "result 50" && buffer.bytes == 0)
    }

    @Test func `the content of an event is its values, texts and paths`() {
        let value = ServiceValue.object(["ab": .array([.string("cde"), .bytes(Data(count: 4)), .null])])
        let bytes = 16 + 2 + 16 + (16 + 3) + (16 + 4) + 16
        let reply = ServiceReply(value, attachments: ["/a", "/b"])
        #expect(ServiceClientEvent.didReceive(from: Self.address, .success(reply), id: "1").contentBytes == bytes + 4)
        let error = ServiceError(number: 1, "why", details: value)
        #expect(ServiceClientEvent.didReceive(from: Self.address, .failure(error), id: "1").contentBytes == bytes + 3)
        let sent = ServiceClientEvent.didFinishSending(to: Self.address, attachments: ["/a"], parameters: value, id: "1")
        #expect(sent.contentBytes == bytes + 2 && Self.step(1).contentBytes == 0)
        #expect(ServiceProviderEvent.requestFailed(from: Self.address, error, id: "1").contentBytes == bytes + 3)
        #expect(ServiceProviderEvent.didFinishSending(to: Self.address, attachments: ["/a"], id: "1").contentBytes == 2)
    }

    @Test func `the content of a request is its parameters and paths`() {
        let request = ServiceRequest(
            id: "1", consumer: Self.address, method: ServiceEngineFixture.method, parameters: .string("cde"),
            attachments: ["/a"], foreground: .none, user: nil, deadline: .distantFuture)
        #expect(ServiceProviderEvent.didReceive(request).contentBytes == 16 + 3 + 2)
    }

    // MARK: Listeners

    private final class Delegate: ServiceClientDelegate {
        let heard = Mutex<[String]>([])

        private func note(_ text: String) { heard.withLock { $0.append(text) } }

        func serviceClient(
            _ client: ServiceClient, didReceiveFrom application: ServiceApplication,
            _ result: Result<ServiceReply, ServiceError>, id: String
        ) { note("result \(id)") }

        func serviceClient(_ client: ServiceClient, didRemoveResultFrom application: ServiceApplication, id: String) {
            note("removed \(id)")
        }

        func serviceClient(
            _ client: ServiceClient, didFinishSendingTo application: ServiceApplication, attachments: [String],
            parameters: ServiceValue, id: String
        ) { note("sent \(id)") }

        func serviceClient(_ client: ServiceClient, didMissEvents count: Int) { note("missed \(count)") }
    }

    /// Runs some work while the calls of the delegate wait for a result that waits for its turn.
    private func whileHeldUp(_ fixture: ServiceEngineFixture, _ work: () async throws -> Void) async throws {
        let call = ServiceEngineFixture.call(ServiceEngineFixture.id(1))
        try await fixture.box.save(call, body: [], claiming: [], keptUntil: ServiceEngine.now + 1_000_000)
        let kept = KeptResult(call, .success(ServiceReply()), files: [], fileBytes: 0)
        _ = try await fixture.box.end(call.id, event: nil, keeping: kept, at: ServiceEngine.now)
        try await fixture.box.resultStarted(call.id)
        let suspects = fixture.engine.suspects
        #expect(suspects.begin(.message(1), at: .now))
        try await fixture.running {
            try await eventually { await fixture.engine.results.unconfirmed.isSuspect(call.id) }
            try await work()
            suspects.end(.message(1))
            try await eventually { try await fixture.box.results().isEmpty }
        }
    }

    @Test func `a slow delegate receives the number of dropped calls, and each stored result`()
        async throws
    {
        let fixture = try await ServiceEngineFixture()
        let delegate = Delegate()
        fixture.client.addDelegate(delegate)
        let listeners = await fixture.engine.clientListeners
        let id = try await fixture.ask(2)
        try await whileHeldUp(fixture) {
            await fixture.engine.finish(id, .success(ServiceReply("x")), nil)
            for number in 0..<1200 {
                let address = ServiceApplication(app: "com.example.files")
                listeners.notify([.didFinishSending(to: address, attachments: [], parameters: nil, id: "\(number)")])
            }
        }
        try await eventually { delegate.heard.withLock { $0.last } == "sent 1199" }
        let heard = delegate.heard.withLock { $0 }
        let sent = (200..<1200).map { "sent \($0)" }
        #expect(Set(heard) == Set(sent + ["missed 200", "result \(id)", "result \(ServiceEngineFixture.id(1))"]))
        #expect(heard.count == 1003)
    }

    @Test func `a result that is removed while a delegate does not return waits no more`() async throws {
        let fixture = try await ServiceEngineFixture()
        let delegate = Delegate()
        fixture.client.addDelegate(delegate)
        let id = try await fixture.ask(2)
        try await whileHeldUp(fixture) {
            await fixture.engine.finish(id, .success(ServiceReply("x")), nil)
            try await fixture.box.confirmResult(id)
            await fixture.engine.removed([RemovedResult(id: id, application: Self.address, files: [], reason: .limit)])
            let isForgotten = fixture.engine.delegateResults.begins(id)
            #expect(isForgotten, "its call does not wait")
        }
        try await eventually { delegate.heard.withLock { $0.count } == 2 }
        #expect(delegate.heard.withLock { $0 } == ["result \(ServiceEngineFixture.id(1))", "removed \(id)"])
    }

    @Test func `a delegate is not called with the results of a former user that wait for it`() async throws {
        let fixture = try await ServiceEngineFixture()
        try await fixture.become("ada")
        let delegate = Delegate()
        fixture.client.addDelegate(delegate)
        let listeners = await fixture.engine.clientListeners
        let id = try await fixture.ask(2)
        try await eventually { await fixture.engine.owner.user == "ada" }
        try await whileHeldUp(fixture) {
            await fixture.engine.finish(id, .success(ServiceReply("x")), nil)
            try await fixture.become("bob")
            try await eventually { await fixture.engine.owner.user == "bob" }
        }
        listeners.notify([.didFinishSending(to: Self.address, attachments: [], parameters: nil, id: "3")])
        try await eventually { delegate.heard.withLock { !$0.isEmpty } }
        #expect(delegate.heard.withLock { $0 } == ["sent 3"])
    }

    /// Does not return before it is released.
    private final class WaitingProviderDelegate: ServiceProviderDelegate {
        let heard = Mutex<[String]>([])
        let hold = ThreadHold()

        func serviceProvider(_ provider: ServiceProvider, didReceive request: ServiceRequest) {
            heard.withLock { $0.append(request.id) }
            hold.wait()
        }
    }

    private static func request(_ id: String) -> ServiceProviderEvent {
        .didReceive(
            ServiceRequest(
                id: id, consumer: address, method: ServiceEngineFixture.method, parameters: nil, attachments: [],
                foreground: .none, user: nil, deadline: .distantFuture))
    }

    @Test(.holdsThread)
    func `a delegate of a provider is not called with the requests of a former user that wait for it`()
        async throws
    {
        let fixture = try await ServiceEngineFixture()
        try await fixture.become("ada")
        let delegate = WaitingProviderDelegate()
        fixture.provider.addDelegate(delegate)
        let listeners = await fixture.engine.providerListeners
        try await eventually { await fixture.engine.owner.user == "ada" }
        listeners.notify([Self.request("1"), Self.request("2")])
        try await eventually { delegate.heard.withLock { $0 } == ["1"] }
        try await fixture.become("bob")
        try await eventually { await fixture.engine.owner.user == "bob" }
        listeners.notify([Self.request("3")])
        delegate.hold.release()
        try await eventually { delegate.heard.withLock { $0.last } == "3" }
        #expect(delegate.heard.withLock { $0 } == ["1", "3"])
    }

    @Test func `a result whose turn comes while the app names another user is reported when the server refuses that user`()
        async throws
    {
        let fixture = try await ServiceEngineFixture()
        try await fixture.become("ada")
        let delegate = Delegate()
        fixture.client.addDelegate(delegate)
        let bob = UserChange.signedIn("bob")
        let runner = await fixture.engine.runner
        try await whileHeldUp(fixture) {
            try await runner.perform { session, context in session.userSet(bob, at: context.now) }
            runner.suspects.end(.message(1))
            try await eventually { await fixture.engine.results.unconfirmed.notified.isEmpty }
            #expect(delegate.heard.withLock { $0 } == [])
            try await runner.perform { session, context in
                guard let identity = session.registration.identity else { return [] }
                return session.userRefused(bob, of: identity, PushError(.userRefused, "no"), at: context.now)
            }
        }
        #expect(delegate.heard.withLock { $0 } == ["result \(ServiceEngineFixture.id(1))"])
    }

    @Test func `an unstored result whose turn comes while the app names another user is reported as well`()
        async throws
    {
        let fixture = try await ServiceEngineFixture()
        try await fixture.become("ada")
        try await eventually { await fixture.engine.owner.user == "ada" }
        let delegate = Delegate()
        fixture.client.addDelegate(delegate)
        let bob = UserChange.signedIn("bob")
        let runner = await fixture.engine.runner
        let id = try await fixture.ask(2)
        try await whileHeldUp(fixture) {
            try await fixture.store.inStep {
                try $0.execute(
                    sql: "CREATE TRIGGER full BEFORE INSERT ON service_result BEGIN SELECT raise(ABORT, 'full'); END")
            }
            await fixture.engine.finish(id, .failure(ServiceError(.storageUnavailable, "full")), nil)
            try await runner.perform { session, context in session.userSet(bob, at: context.now) }
            runner.suspects.end(.message(1))
            try await eventually { await fixture.engine.results.unconfirmed.notified.isEmpty }
            #expect(delegate.heard.withLock { $0 } == [])
            try await runner.perform { session, context in
                guard let identity = session.registration.identity else { return [] }
                return session.userRefused(bob, of: identity, PushError(.userRefused, "no"), at: context.now)
            }
            try await eventually { delegate.heard.withLock { $0.count } == 2 }
        }
        #expect(
            Set(delegate.heard.withLock { $0 }) == ["result \(ServiceEngineFixture.id(1))", "result \(id)"])
    }

    /// Does not return from a sent request before it is released.
    private final class HoldingDelegate: ServiceClientDelegate {
        let heard = Mutex<[String]>([])
        let hold = ThreadHold()

        func serviceClient(
            _ client: ServiceClient, didReceiveFrom application: ServiceApplication,
            _ result: Result<ServiceReply, ServiceError>, id: String
        ) { heard.withLock { $0.append(id) } }

        func serviceClient(
            _ client: ServiceClient, didFinishSendingTo application: ServiceApplication, attachments: [String],
            parameters: ServiceValue, id: String
        ) {
            heard.withLock { $0.append("sent") }
            hold.wait()
        }
    }

    enum ReaderEnd: CaseIterable, Sendable {
        case confirmed, removed, kept
    }

    @Test(.holdsThread, arguments: ReaderEnd.allCases)
    func `a result that a reader has is not reported to readers again when the server refuses another user`(
        end: ReaderEnd
    ) async throws {
        let fixture = try await ServiceEngineFixture()
        let engine = fixture.engine
        try await fixture.become("ada")
        try await eventually { await engine.owner.user == "ada" }
        let delegate = HoldingDelegate()
        fixture.client.addDelegate(delegate)
        let (listeners, runner, bob) = (await engine.clientListeners, await engine.runner, UserChange.signedIn("bob"))
        try await fixture.store.inStep {
            try $0.execute(
                sql: "CREATE TRIGGER full BEFORE DELETE ON service_result BEGIN SELECT raise(ABORT, 'full'); END")
        }
        let (id, next) = (try await fixture.ask(1), try await fixture.ask(2))
        listeners.notify([.didFinishSending(to: Self.address, attachments: [], parameters: nil, id: "0")])
        try await eventually { delegate.heard.withLock { $0 } == ["sent"] }
        await engine.finish(id, .success(ServiceReply("x")), nil)
        var iterator = fixture.client.replies.makeAsyncIterator()
        let reply = await iterator.next()
        #expect(reply?.id == id)
        try await runner.perform { session, context in session.userSet(bob, at: context.now) }
        delegate.hold.release()
        try await eventually { await engine.results.deferred[id] == .delegates }
        switch end {
        case .confirmed: await reply?.confirm()
        case .removed: await engine.removed([RemovedResult(id: id, application: Self.address, files: [], reason: .limit)])
        case .kept: break
        }
        fixture.client.removeDelegate(delegate)
        let expected: ServiceResults.Audience? = end == .kept ? .delegates : nil
        let deferred = await engine.results.deferred[id]
        #expect(deferred == expected)
        try await runner.perform { session, context in
            guard let identity = session.registration.identity else { return [] }
            return session.userRefused(bob, of: identity, PushError(.userRefused, "no"), at: context.now)
        }
        await engine.notifyDeferredResults()
        #expect(await engine.results.deferred.isEmpty)
        await engine.finish(next, .success(ServiceReply("y")), nil)
        let second = await iterator.next()
        #expect(second?.id == next)
        #expect(delegate.heard.withLock { $0 } == ["sent"])
    }
}
