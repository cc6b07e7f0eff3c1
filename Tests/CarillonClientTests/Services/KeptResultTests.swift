import CarillonWire
import Foundation
import GRDB
import Synchronization
import TestSupport
import Testing

@testable import CarillonClient

/// Results that the app has not confirmed.
@Suite(.timeLimit(.minutes(5)))
struct KeptResultTests {
    private typealias Fixture = ServiceEngineFixture

    private func keep(
        _ number: Int, _ box: ServiceBox, at now: Int64 = 1, fileBytes: Int64 = 0, sparing: Set<String> = []
    ) async throws -> [RemovedResult] {
        let call = Fixture.call(Fixture.id(number))
        try await box.save(call, body: [], claiming: [], keptUntil: 1_000_000)
        let result = KeptResult(
            call, .success(ServiceReply(.integer(Int64(number)))), files: ["a/\(number)/f"], fileBytes: fileBytes)
        let ended = try await box.end(call.id, event: nil, keeping: result, sparing: sparing, at: now)
        #expect(ended.isFirst)
        return ended.removed
    }

    @Test func `a result is kept until it is confirmed, with its value, error and files`() async throws {
        let fixture = try await Fixture()
        let box = fixture.box
        let call = Fixture.call(try await fixture.ask(1))
        try await fixture.receive(.failed(try #require(ServiceRequestID(call.id)), code: "x"))
        let number = try #require(try await box.events(after: 0, at: 1, limit: 1).last)
        var error = ServiceError(number: 7, "why", details: ["a": 1])
        error.domain = "com.example.x"
        let kept = KeptResult(call, .failure(error), files: [], fileBytes: 0)
        #expect(try await box.end(call.id, event: number, keeping: kept, at: 1) == EndedCall(isFirst: true))
        #expect(try await box.events(after: 0, at: 1, limit: 1).events.isEmpty)
        #expect(try await box.call(call.id) == nil)
        let failure = try #require(try await box.results().first)
        #expect(failure.result { $0 } == .failure(error))
        #expect(try await box.end(call.id, event: nil, keeping: kept, at: 1) == EndedCall(isFirst: false))
        _ = try await keep(2, box)
        let success = try #require(try await box.results().last)
        #expect(success.result { "/" + $0 } == .success(ServiceReply(2, attachments: ["/a/2/f"])))
        #expect(success.serviceMethod == call.serviceMethod && success.application == ServiceApplication(call.peer))
        try await box.confirmResult(call.id)
        #expect(try await box.results().map(\.id) == [Fixture.id(2)])
        try await fixture.store.inStep { try StoreChange.saveAcceptedUser("ada").apply(to: $0) }
        #expect(try await box.results().map(\.id) == [Fixture.id(2)], "the first user has what came before")
        try await fixture.store.inStep { try StoreChange.saveAcceptedUser("bob").apply(to: $0) }
        #expect(try await box.results().isEmpty, "another user has none of it")
    }

    @Test func `beyond a thousand results the oldest one is removed that no delegate is being called with`() async throws {
        let fixture = try await Fixture()
        for number in 0..<1000 { #expect(try await keep(number, fixture.box).isEmpty) }
        let removed = try await keep(1000, fixture.box, sparing: [Fixture.id(0)])
        let application = ServiceApplication(Fixture.other)
        let expected = RemovedResult(id: Fixture.id(1), application: application, files: ["a/1/f"], reason: .limit)
        #expect(removed == [expected])
        #expect(try await keep(1001, fixture.box).map(\.id) == [Fixture.id(0)])
        #expect(try await fixture.box.results().count == 1000)
    }

    @Test func `beyond 64 MiB with files the oldest are removed, and the newest stays`() async throws {
        let fixture = try await Fixture()
        for number in 0..<2 { #expect(try await keep(number, fixture.box, fileBytes: 30 << 20).isEmpty) }
        #expect(try await keep(2, fixture.box, fileBytes: 30 << 20).map(\.id) == [Fixture.id(0)])
        #expect(try await keep(3, fixture.box, fileBytes: 1 << 40).map(\.id) == [Fixture.id(1), Fixture.id(2)])
        #expect(try await fixture.box.results().map(\.id) == [Fixture.id(3)])
    }

    @Test func `a result is kept for seven days`() async throws {
        let fixture = try await Fixture()
        _ = try await keep(1, fixture.box, at: 1000)
        let week: Int64 = 7 * 86_400_000
        #expect(try await fixture.box.removeSurplusResults(sparing: [], at: 1000 + week).isEmpty)
        let removed = try await fixture.box.removeSurplusResults(sparing: [], at: 1001 + week)
        #expect(removed.map(\.id) == [Fixture.id(1)] && removed.map(\.reason) == [.expired])
        #expect(try await fixture.box.results().isEmpty)
    }

    @Test func `a delegate that returned has confirmed, and the next run reports nothing`() async throws {
        let fixture = try await Fixture()
        let delegate = NotingServiceClientDelegate()
        fixture.client.addDelegate(delegate)
        let ids = [try await fixture.ask(1), try await fixture.ask(2)]
        try await fixture.running {
            for id in ids { try await fixture.receive(.failed(try #require(ServiceRequestID(id)), code: "x")) }
            try await eventually { try await fixture.box.results().isEmpty && delegate.ids.count == 2 }
        }
        try await fixture.running { try await Task.sleep(for: .milliseconds(50)) }
        #expect(Set(delegate.ids) == Set(ids) && delegate.ids.count == 2)
    }

    @Test func `an unconfirmed result is delivered in each run, and once more to a delegate`() async throws {
        let fixture = try await Fixture()
        let id = try await fixture.ask(1)
        let event = ServiceEvent.failed(try #require(ServiceRequestID(id)), code: "x")
        for run in 0..<2 {
            try await fixture.running {
                if run == 0 { try await fixture.receive(event) }
                for await reply in fixture.client.replies {
                    #expect(reply.id == id)
                    break
                }
            }
        }
        #expect(try await fixture.box.results().count == 1)
        let delegate = NotingServiceClientDelegate()
        fixture.client.addDelegate(delegate)
        try await fixture.running { try await eventually { try await fixture.box.results().isEmpty } }
        #expect(delegate.ids == [id])
    }

    @Test(arguments: [9, 10]) func `a result with which the process ended ten times is removed`(times: Int) async throws {
        let fixture = try await Fixture()
        let id = Fixture.id(1)
        _ = try await keep(1, fixture.box, at: ServiceEngine.now)
        for _ in 0..<times { try await fixture.box.resultStarted(id) }
        let delegate = NotingServiceClientDelegate()
        fixture.client.addDelegate(delegate)
        try await fixture.running {
            try await eventually { !delegate.ids.isEmpty || delegate.removed.withLock { !$0.isEmpty } }
            try await eventually { try await fixture.box.results().isEmpty }
        }
        #expect(delegate.ids == (times == 10 ? [] : [id]))
        #expect(delegate.removed.withLock { $0 } == (times == 10 ? [id] : []))
    }

    @Test(.holdsThread)
    func `the start of a delegate is stored for one result at a time, and a stop removes it`() async throws {
        let fixture = try await Fixture()
        for number in 1...2 { _ = try await keep(number, fixture.box, at: ServiceEngine.now) }
        let starts: @Sendable () async throws -> [Int] = {
            try await fixture.box.store.inStep { db in
                try Int.fetchAll(db, sql: "SELECT starts FROM service_result ORDER BY number")
            }
        }
        let delegate = WaitingDelegate()
        fixture.client.addDelegate(delegate)
        try await fixture.running {
            try await eventually { delegate.calls.withLock { $0 } == 1 }
            #expect(try await starts() == [1, 0])
        }
        #expect(try await starts() == [0, 0])
        delegate.hold.release()
        try await eventually { try await starts().isEmpty }
    }

    private func starts(_ fixture: Fixture) async throws -> [Int] {
        try await fixture.store.inStep { db in
            try Int.fetchAll(db, sql: "SELECT starts FROM service_result ORDER BY number")
        }
    }

    @Test func `the start of a reader is stored before it has a result, and the next one or a stop removes it`()
        async throws
    {
        let fixture = try await Fixture()
        for number in 1...2 { _ = try await keep(number, fixture.box, at: ServiceEngine.now) }
        try await fixture.running {
            var iterator = fixture.client.replies.makeAsyncIterator()
            let first = await iterator.next()
            #expect(first?.id == Fixture.id(1))
            #expect(try await starts(fixture) == [1, 0])
            let second = await iterator.next()
            #expect(second?.id == Fixture.id(2))
            try await eventually { try await starts(fixture) == [0, 1] }
        }
        try await eventually { try await starts(fixture) == [0, 0] }
    }

    @Test func `an iteration of results that breaks off does not count`() async throws {
        let fixture = try await Fixture()
        _ = try await keep(1, fixture.box, at: ServiceEngine.now)
        try await fixture.running {
            for await reply in fixture.client.replies {
                #expect(reply.id == Fixture.id(1))
                #expect(try await starts(fixture) == [1])
                break
            }
            try await eventually { try await starts(fixture) == [0] }
        }
    }

    @Test(arguments: [9, 10]) func `a result with which the process ended ten times is not delivered to a reader`(times: Int)
        async throws
    {
        let fixture = try await Fixture()
        for number in 1...2 { _ = try await keep(number, fixture.box, at: ServiceEngine.now) }
        for _ in 0..<times { try await fixture.box.resultStarted(Fixture.id(1)) }
        let events = fixture.client.events
        try await fixture.running {
            var removed = events.makeAsyncIterator()
            var iterator = fixture.client.replies.makeAsyncIterator()
            let first = await iterator.next()
            #expect(first?.id == Fixture.id(times == 10 ? 2 : 1))
            let counted = try await starts(fixture)
            #expect(counted == (times == 10 ? [1] : [10, 0]))
            guard times == 10 else { return }
            guard case .resultRemoved(_, Fixture.id(1), .crashed)? = await removed.next() else {
                Issue.record("no event")
                return
            }
        }
    }

    @Test func `a result that was under way when the process ended waits for its turn`() async throws {
        let fixture = try await Fixture()
        _ = try await keep(1, fixture.box, at: ServiceEngine.now)
        try await fixture.box.resultStarted(Fixture.id(1))
        let suspects = fixture.engine.suspects
        #expect(suspects.begin(.message(1), at: .now))
        try await fixture.running {
            let other = Task { [engine = fixture.engine] in
                try await eventually { await engine.results.unconfirmed.isSuspect(Fixture.id(1)) }
                suspects.end(.message(1))
            }
            var iterator = fixture.client.replies.makeAsyncIterator()
            let reply = await iterator.next()
            #expect(reply?.id == Fixture.id(1))
            #expect(!suspects.begin(.message(2), at: .now), "the turn is that of the result")
            try await other.value
            await reply?.confirm()
            #expect(suspects.begin(.message(2), at: .now))
        }
    }

    @Test func `a result that a delegate and a reader have is counted once, and ends with the last of them`() {
        var results = UnconfirmedResults()
        let unknown = results.begins("a", with: .reader)
        results.kept("a", isNotified: true)
        let (first, second) = (results.begins("a", with: .reader), results.begins("a", with: .delegate))
        #expect(!unknown && first && !second && results.started == ["a"])
        let (reader, again) = (results.released("a", by: .reader), results.released("a", by: .reader))
        let delegate = results.released("a", by: .delegate)
        #expect(!reader && !again && delegate)
        let third = results.begins("a", with: .reader)
        let taken = results.takeStarted()
        let late = results.released("a", by: .reader)
        #expect(third && taken == ["a"] && results.started.isEmpty && !late)
        let fourth = results.begins("a", with: .reader)
        let isEnded = results.ended("a")
        let confirmed = results.released("a", by: .reader)
        #expect(fourth && isEnded && !confirmed && !results.contains("a"))
    }

    /// Does not return before it is released.
    private final class WaitingDelegate: ServiceClientDelegate {
        let calls = Mutex(0)
        let hold = ThreadHold()

        func serviceClient(
            _ client: ServiceClient, didReceiveFrom application: ServiceApplication,
            _ result: Result<ServiceReply, ServiceError>, id: String
        ) {
            calls.withLock { $0 += 1 }
            hold.wait()
        }
    }

    @Test func `a reader that confirms ends a result for good`() async throws {
        let fixture = try await Fixture()
        let id = try await fixture.ask(1)
        await fixture.engine.finish(id, .success(ServiceReply("late")), nil)
        for await reply in fixture.client.replies {
            #expect(try reply.result.get().value == "late")
            await reply.confirm()
            await reply.confirm()
            break
        }
        #expect(try await fixture.box.results().isEmpty)
        await fixture.engine.finish(id, .success(ServiceReply("again")), nil)
        #expect(try await fixture.box.results().isEmpty)
    }

    @Test func `a removed result is removed with its files, and the app is notified`() async throws {
        let fixture = try await Fixture()
        let delegate = NotingServiceClientDelegate()
        fixture.client.addDelegate(delegate)
        var events = fixture.client.events.makeAsyncIterator()
        let message = fixture.directory.path + "/Inbox/a/1"
        try FileManager.default.createDirectory(atPath: message, withIntermediateDirectories: true)
        try Data([1]).write(to: URL(filePath: message + "/f"))
        _ = try await keep(1, fixture.box)
        await fixture.engine.notifyKeptResults()
        guard case .resultRemoved(let application, Fixture.id(1), .expired)? = await events.next() else {
            Issue.record("no event")
            return
        }
        #expect(application == ServiceApplication(Fixture.other))
        #expect(!FileManager.default.fileExists(atPath: message))
        try await eventually { delegate.removed.withLock { $0 } == [Fixture.id(1)] }
        #expect(delegate.reasons.withLock { $0 } == [.expired])
        #expect(delegate.ids.isEmpty)
    }

    @Test func `a result whose delegate was removed before its call is delivered to another one in the next run`()
        async throws
    {
        let fixture = try await Fixture()
        do {
            let gone = NotingServiceClientDelegate()
            fixture.client.addDelegate(gone)
        }
        let listeners = await fixture.engine.clientListeners
        try await eventually { listeners.livingDelegates.isEmpty }
        let id = try await fixture.ask(1)
        await fixture.engine.finish(id, .success(ServiceReply("x")), nil)
        try await eventually { await fixture.engine.results.unconfirmed.notified.isEmpty }
        let delegate = NotingServiceClientDelegate()
        fixture.client.addDelegate(delegate)
        try await fixture.running { try await eventually { delegate.ids == [id] } }
    }

    @Test func `only a result that a delegate is called with is spared, and a removed one is not delivered`() {
        let heard = DelegateResults()
        let (first, second) = (heard.begins("1"), heard.begins("2"))
        #expect(first && second && heard.ids == ["1", "2"])
        heard.confirmed("1")
        #expect(heard.ids == ["2"])
        heard.removed("3")
        let removed = heard.begins("3")
        #expect(!removed && heard.ids == ["2"])
        heard.finished("3")
        let again = heard.begins("3")
        #expect(again)
    }

    @Test func `results that become too old while the client runs are removed`() async throws {
        let fixture = try await Fixture()
        let delegate = NotingServiceClientDelegate()
        fixture.client.addDelegate(delegate)
        let removal = Task { [engine = fixture.engine] in await engine.runResultRemoval(every: .milliseconds(5)) }
        for number in 1...2 {
            _ = try await keep(number, fixture.box)
            try await eventually { try await fixture.box.results().isEmpty }
        }
        try await eventually { delegate.removed.withLock { $0 } == [Fixture.id(1), Fixture.id(2)] }
        removal.cancel()
        await removal.value
    }

    @Test func `a result that is removed is not read from the late replies any more`() async throws {
        let fixture = try await Fixture()
        await fixture.engine.finish(try await fixture.ask(1), .success(ServiceReply("x")), nil)
        try await fixture.store.inStep { try $0.execute(sql: "UPDATE service_result SET received_at = 1") }
        let removal = Task { [engine = fixture.engine] in await engine.runResultRemoval(every: .milliseconds(5)) }
        try await eventually { try await fixture.box.results().isEmpty }
        removal.cancel()
        await removal.value
        let reading = Task { [client = fixture.client] in
            var replies = client.replies.makeAsyncIterator()
            return await replies.next()?.id
        }
        try await Task.sleep(for: .milliseconds(50))
        reading.cancel()
        #expect(await reading.value == nil)
    }

    @Test func `a reader does not receive a result of the former user after the app named another one`() async throws {
        let fixture = try await Fixture()
        let (engine, bob) = (fixture.engine, UserChange.signedIn("bob"))
        let runner = await engine.runner
        try await fixture.become("ada")
        try await eventually { await engine.owner.user == "ada" }
        await engine.finish(try await fixture.ask(1), .success(ServiceReply("x")), nil)
        try await runner.perform { session, context in session.userSet(bob, at: context.now) }
        let reading = Task { [client = fixture.client] in
            var replies = client.replies.makeAsyncIterator()
            return await replies.next()?.id
        }
        // The reader begins.
        for _ in 0..<10 { await runner.flush() }
        try await runner.perform { session, context in
            guard let identity = session.registration.identity else { return [] }
            return session.userAccepted(bob, of: identity, as: "bob", at: context.now)
        }
        try await eventually { await engine.owner.user == "bob" }
        let id = try await fixture.ask(2)
        await engine.finish(id, .success(ServiceReply("y")), nil)
        #expect(await reading.value == id)
    }

    private func reply(_ id: String) -> LateReply {
        LateReply(
            id: id, provider: .init(app: "a"), method: .init("s", "1", "m"), result: .success(ServiceReply()), done: {})
    }

    @Test(arguments: [true, false])
    func `a result that a cancelled or replaced reader did not get goes to the next reader`(isCancelled: Bool)
        async throws
    {
        let replies = LateReplies()
        replies.add(reply("1"))
        replies.add(reply("2"))
        let gate = PendingResult<Void>()
        let begun = Mutex<[String]>([])
        let returned = Mutex<[String]>([])
        let calls = LateReplies.Calls(
            begins: { id in
                begun.withLock { $0.append(id) }
                // A cancelled reader waits no longer.
                try? await gate.value
                return true
            }, notDelivered: { id in returned.withLock { $0.append(id) } })
        func begin() -> Task<String?, Never> {
            let stream = replies.stream(calls)
            return Task {
                var iterator = stream.makeAsyncIterator()
                return await iterator.next()?.id
            }
        }
        let first = begin()
        try await eventually { begun.withLock { $0 } == ["1"] }
        if isCancelled { first.cancel() }
        let second = isCancelled ? nil : begin()
        try await eventually { begun.withLock { $0.count } == (isCancelled ? 1 : 2) }
        gate.resume(.success(()))
        #expect(await first.value == nil)
        #expect(returned.withLock { $0 } == ["1"])
        if let second { #expect(await second.value == "2") }
        var last = replies.stream().makeAsyncIterator()
        let next = await last.next()
        #expect(next?.id == "1")
    }

    @Test func `a waiting reader receives the result that the earlier reader did not get`() async throws {
        let replies = LateReplies()
        replies.add(reply("1"))
        let gate = PendingResult<Void>()
        let begun = Mutex(0)
        var first = replies.stream(
            .init(begins: { _ in
                begun.withLock { $0 += 1 }
                return (try? await gate.value) != nil
            })
        ).makeAsyncIterator()
        let waiting = Task {
            try await eventually { begun.withLock { $0 } == 1 }
            let second = replies.stream()
            let read = Task {
                var iterator = second.makeAsyncIterator()
                return await iterator.next()?.id
            }
            gate.resume(.success(()))
            return await read.value
        }
        let none = await first.next()
        #expect(none == nil)
        #expect(try await waiting.value == "1")
    }

    @Test func `a result that is not started after it has its turn leaves the turn to others`() async throws {
        let fixture = try await Fixture()
        let (engine, id) = (fixture.engine, Fixture.id(1))
        _ = try await keep(1, fixture.box, at: ServiceEngine.now)
        try await fixture.box.resultStarted(id)
        try await fixture.running {
            try await eventually { await engine.results.unconfirmed.isSuspect(id) }
            let cancelled = Task {
                while !Task.isCancelled { await Task.yield() }
                return await engine.willCallDelegate(with: id)
            }
            cancelled.cancel()
            _ = await cancelled.value
            #expect(engine.suspects.begin(.message(1), at: .now))
        }
    }

    @Test func `late replies are read by one reader at a time, each once`() async throws {
        let replies = LateReplies()
        for id in ["1", "2", "2", "3"] { replies.add(reply(id)) }
        var first = replies.stream().makeAsyncIterator()
        let one = await first.next()
        #expect(one?.id == "1")
        var second = replies.stream().makeAsyncIterator()
        let none = await first.next()
        #expect(none?.id == nil, "another reader came")
        replies.remove("2")
        let three = await second.next()
        #expect(three?.id == "3")
        let waiting = Task {
            var iterator = replies.stream().makeAsyncIterator()
            return await iterator.next()?.id
        }
        replies.add(reply("4"))
        #expect(await waiting.value == "4")
        replies.add(reply("5"))
        replies.removeAll()
        let cancelled = Task {
            var iterator = replies.stream().makeAsyncIterator()
            return await iterator.next()?.id
        }
        cancelled.cancel()
        #expect(await cancelled.value == nil)
    }
}
