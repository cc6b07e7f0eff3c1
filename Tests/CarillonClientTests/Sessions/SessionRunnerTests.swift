import CarillonWire
import Foundation
import GRDB
import Logging
import Synchronization
import TestSupport
import Testing

@testable import CarillonClient

@Suite(.timeLimit(.minutes(5)))
struct SessionRunnerTests {
    private typealias Base = ClientSessionTests

    let directory = TemporaryDirectory()

    private func makeRunner() throws -> (SessionRunner, ClientStore) {
        // A store of before may be closed a while after its last step, by the thread that ran it.
        let store = try ClientStore(directory: directory.path, patience: 60)
        let stored = try store.load(server: "http://host", app: "com.example.app")
        let logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        return (SessionRunner(store: store, session: ClientSession(.init(), restoring: stored), logger: logger), store)
    }

    /// Delays steps until all of them have been requested, so that they are performed as one group.
    private func together(_ store: ClientStore, _ ask: () -> Void) {
        let gate = DispatchSemaphore(value: 0)
        store.schedule { _ in gate.wait() }
        ask()
        gate.signal()
    }

    @Test func `a request beside the socket with a never accepted credential begins the registration anew`() async throws {
        do {
            let store = try ClientStore(directory: directory.path)
            _ = try store.load(server: "http://host", app: "com.example.app")
            try await store.inStep { database in
                try StoreChange.saveIdentity(Base.identity).apply(to: database)
                try StoreChange.saveRegistration("secret").apply(to: database)
            }
            try store.marker.put(for: Base.identity.device)
        }
        let (runner, _) = try makeRunner()
        try await runner.perform { session, context in session.started(at: context.now) }
        #expect(runner.repeatsRegistration(afterRefusalOf: Base.identity.credential))
        // Steps are taken in their order.
        try await runner.perform { _, _ in [] }
        #expect(runner.session.usableIdentity == nil)
        try await runner.perform { session, _ in
            session.registration.secret = nil
            return []
        }
        #expect(!runner.repeatsRegistration(afterRefusalOf: Base.identity.credential))
    }

    @Test func `requests beside the socket wait while the registration is repeated`() async throws {
        do {
            let store = try ClientStore(directory: directory.path)
            _ = try store.load(server: "http://host", app: "com.example.app")
            try await store.inStep { database in
                try StoreChange.saveIdentity(Base.identity).apply(to: database)
                try StoreChange.saveRegistration("secret").apply(to: database)
            }
            try store.marker.put(for: Base.identity.device)
        }
        let (runner, _) = try makeRunner()
        try await runner.perform { session, context in session.started(at: context.now) }
        #expect(runner.session.usableIdentity == Base.identity)
        try await runner.perform { session, context in session.socketOpened(at: context.now) }
        try await runner.perform { session, context in
            session.socketClosed(code: 4401, at: context.now, random: context.random)
        }
        #expect(runner.session.registration.identity == Base.identity && runner.session.usableIdentity == nil)
        try await runner.perform { session, context in session.timerFired(at: context.now + .seconds(60)) }
        let newer = DeviceIdentity(device: "d", credential: "newer", socket: Base.identity.socket)
        try await runner.perform { session, _ in session.deviceRegistered(newer) }
        #expect(runner.session.usableIdentity == newer && runner.session.registration.secret == "secret")
    }

    @Test func `a step that cannot be stored fails alone, and the others of its group are done in order`() async throws {
        let (runner, store) = try makeRunner()
        try await withCheckedThrowingContinuation { (done: CheckedContinuation<Void, any Error>) in
            store.schedule { database in
                done.resume(
                    with: Result {
                        try database.execute(
                            sql: """
                                CREATE TRIGGER refused BEFORE INSERT ON channel WHEN new.identifier = 'bad'
                                BEGIN SELECT raise(ABORT, 'refused'); END
                                """)
                    })
            }
        }
        let (results, result) = AsyncStream.makeStream(of: (String, Bool).self)
        together(store) {
            for name in ["a", "bad", "b"] {
                let id = runner.makeChannelID()
                runner.begin { (session, _) throws(PushError) in
                    try session.connectRequested(name, as: id, deadline: nil)
                } done: { outcome in
                    if case .success = outcome { result.yield((name, true)) } else { result.yield((name, false)) }
                }
            }
        }
        var seen: [String] = []
        for await (name, isDone) in results {
            seen.append("\(name) \(isDone)")
            if seen.count == 3 { break }
        }
        #expect(seen == ["a true", "bad false", "b true"])
        #expect(runner.channel("a").state == .connecting)
        #expect(runner.channel("bad").state == .none)
        #expect(runner.channel("b").state == .connecting)
        #expect(try store.load(server: "http://host", app: "com.example.app").channels.keys.sorted() == ["a", "b"])
    }

    @Test func `a step of a group sees what those before it did, and misuse concerns nobody else`() async throws {
        let (runner, store) = try makeRunner()
        let (results, result) = AsyncStream.makeStream(of: Bool.self)
        together(store) {
            for _ in 0..<3 {
                let id = runner.makeChannelID()
                runner.begin { (session, _) throws(PushError) in
                    try session.connectRequested("a", as: id, deadline: nil)
                } done: { outcome in
                    if case .success = outcome { result.yield(true) } else { result.yield(false) }
                }
            }
        }
        var seen: [Bool] = []
        for await isDone in results {
            seen.append(isDone)
            if seen.count == 3 { break }
        }
        #expect(seen == [true, false, false])
        #expect(runner.channel("a").state == .connecting)
    }

    @Test func `more steps than a group allows are all performed`() async throws {
        let (runner, store) = try makeRunner()
        let (results, result) = AsyncStream.makeStream(of: Int.self)
        let count = StepQueue.groupLimit * 2 + 3
        together(store) {
            for number in 0..<count { runner.begin({ _, _ in [] }) { _ in result.yield(number) } }
        }
        var next = 0
        for await number in results {
            #expect(number == next)
            next += 1
            if next == count { break }
        }
    }

    @Test(arguments: [true, false]) func `data that must survive a loss of power waits for the disk`(
        mustReachDisk: Bool
    ) async throws {
        let (_, store) = try makeRunner()
        let level = try await withCheckedThrowingContinuation { (done: CheckedContinuation<Int?, any Error>) in
            store.schedule { database in
                done.resume(
                    with: Result {
                        try store.transaction(reachingDisk: mustReachDisk, in: database) {}
                        return try Int.fetchOne(database, sql: "PRAGMA synchronous")
                    })
            }
        }
        #expect(level == (mustReachDisk ? 2 : 1))
    }

    // MARK: Warnings

    private struct Log: LogHandler {
        let lines: AsyncStream<String>.Continuation
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.warning

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            lines.yield("\(event.level) \(event.metadata?["channel"] ?? "") \(event.metadata?["waiting"] ?? "")")
        }
    }

    @Test func `a warning names a channel that nobody reads, once, and none that somebody reads`() async throws {
        let store = try ClientStore(directory: directory.path)
        let stored = try store.load(server: "http://host", app: "com.example.app")
        let (lines, line) = AsyncStream.makeStream(of: String.self)
        let runner = SessionRunner(
            store: store, session: ClientSession(.init(), restoring: stored),
            logger: Logger(label: "test", factory: { _ in Log(lines: line) }))
        _ = runner.readQueue(of: "read").acquire()
        for (name, waiting) in [("read", 1), ("unread", 2), ("unread", 3), ("other", 4)] {
            try await runner.perform { _, _ in [.checkForReader(of: name, waiting: waiting)] }
        }
        line.finish()
        var seen: [String] = []
        for await line in lines { seen.append(line) }
        #expect(seen == ["warning unread 2", "warning other 4"])
    }

    // MARK: Intake

    @Test func `reading waits for the store when much is under way, and the end waits for all of it`() async {
        let intake = FrameIntake()
        for _ in 0..<FrameIntake.limit { await intake.enter() }
        let entered = Mutex(false)
        let reader = Task {
            await intake.enter()
            entered.withLock { $0 = true }
        }
        for _ in 0..<100 { await Task.yield() }
        #expect(!entered.withLock { $0 })
        intake.leave()
        await reader.value
        let ended = Mutex(false)
        let end = Task {
            await intake.drained()
            ended.withLock { $0 = true }
        }
        for _ in 0..<100 { await Task.yield() }
        for _ in 1..<FrameIntake.limit { intake.leave() }
        for _ in 0..<100 { await Task.yield() }
        #expect(!ended.withLock { $0 })
        intake.leave()
        await end.value
        await intake.drained()
    }
}
