import CarillonBasics
import CarillonWire
import Dispatch
import Synchronization
import TestStores
import TestSupport
import Testing

@testable import CarillonCore
@testable import CarillonServer

/// Concurrent publications, and publications to connected devices.
@Suite(.timeLimit(.minutes(5)))
struct PresentUpdatesTests {
    private let language = AudienceLanguage { _, _ in nil }
    private static let start = Timestamp(milliseconds: 1)

    private func made(
        _ store: any Store, _ number: UInt64, bytes: Int = 10, app: Int64 = 1, audience: String? = nil
    ) async throws -> (update: Update, previous: UpdateSerial) {
        let definition = Update.Definition(
            kind: .definitions, payload: Array("{}".utf8), audience: audience, mode: .once, ttlSeconds: 3600,
            orderKey: nil, supersedes: nil)
        let request = UpdateRequest(
            proposed: UpdateID(Bytes16(high: 1, low: number)), app: AppSerial(app), key: KeyID(1), definition: definition,
            body: Array(repeating: 7, count: bytes), isIndexed: true, idempotency: nil, limits: .init())
        guard case .made(let update, nil, let previous) = try await store.publishUpdate(request, at: Self.start) else {
            throw StoreFault(.unavailable, "not published")
        }
        return (update, previous)
    }

    @Test(arguments: [false, true])
    func `of two concurrent updates none is skipped`(_ looksBetween: Bool) async throws {
        let store = try await stores.open()
        _ = try await store.createApp(try #require(AppID("com.example.app")), at: Self.start)
        let logs = UpdateLogs(store: store, documents: AppDocuments(store: store), language: language)
        #expect(try await logs.log(of: AppSerial(1)).live.count == 0)
        let first = try await made(store, 1)
        let second = try await made(store, 2)
        #expect(first.previous == UpdateSerial(0) && second.previous == first.update.serial)
        let both = [first.update.serial, second.update.serial]
        logs.published(second.update, after: second.previous)
        // A device that is evaluated up to the second must have received the first.
        if looksBetween { #expect(try await logs.log(of: AppSerial(1)).live.serialsInOrder == both) }
        logs.published(first.update, after: first.previous)
        #expect(try await logs.log(of: AppSerial(1)).live.serialsInOrder == both)
    }

    private func store(apps: Int) async throws -> any Store {
        let store = try await stores.open()
        for number in 1...apps {
            _ = try await store.createApp(try #require(AppID("com.example.app\(number)")), at: Self.start)
        }
        return store
    }

    @Test func `the largest logs of other apps make room, as few as are needed`() async throws {
        let store = try await store(apps: 6)
        let logs = UpdateLogs(store: store, documents: AppDocuments(store: store), language: language, mostBytes: 1000)
        var number: UInt64 = 0
        func publish(_ count: Int, of app: Int64) async throws {
            _ = try await logs.log(of: AppSerial(app))
            for _ in 0..<count {
                number += 1
                let (update, previous) = try await made(store, number, bytes: 100, app: app)
                logs.published(update, after: previous)
            }
        }
        // The first counts as a quarter of the capacity.
        try await publish(9, of: 1)
        for app in 2...4 as ClosedRange<Int64> { try await publish(2, of: app) }
        try await publish(1, of: 5)
        try await publish(0, of: 6)
        #expect(logs.knownLogs == 6)
        try await publish(1, of: 5)
        #expect(logs.knownLogs == 5)
        let reads = logs.reads
        for app in 2...6 as ClosedRange<Int64> { _ = try await logs.log(of: AppSerial(app)) }
        #expect(logs.reads == reads, "only the largest was forgotten")
        #expect(try await logs.log(of: AppSerial(1)).live.weight == 900)
        #expect(logs.knownLogs == 5, "one of the others was removed")
        for serial in try await logs.log(of: AppSerial(1)).live.serialsInOrder { logs.ended(serial, of: AppSerial(1)) }
        #expect(try await logs.log(of: AppSerial(1)).live.weight == 0)
        for app in 2...5 as ClosedRange<Int64> { _ = try await logs.log(of: AppSerial(app)) }
        #expect(logs.knownLogs == 6, "ended updates use no memory")
    }

    @Test func `logs that more recent ones replaced use no memory`() async throws {
        let store = try await store(apps: 6)
        let logs = UpdateLogs(store: store, documents: AppDocuments(store: store), language: language, capacity: 2)
        for app in 1...6 as ClosedRange<Int64> { _ = try await logs.log(of: AppSerial(app)) }
        #expect(logs.knownLogs <= 4)
    }

    @Test func `a concurrently requested log is read once`() async throws {
        let store = try await store(apps: 1)
        let logs = UpdateLogs(store: store, documents: AppDocuments(store: store), language: language)
        for round in 1...10 {
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<50 { group.addTask { _ = try? await logs.log(of: AppSerial(1)) } }
            }
            #expect(logs.reads == round)
            logs.forget(AppSerial(1))
        }
    }

    @Test func `the audience of a published update is used as it was read, or read anew if the rules changed`()
        async throws
    {
        let store = try await store(apps: 1)
        let logs = UpdateLogs(store: store, documents: AppDocuments(store: store), language: language)
        let rules = try await logs.log(of: AppSerial(1)).rules
        let read = UpdateLogs.ReadAudience(audience: try logs.audience("user == 'anna'", by: rules), rules: rules)
        let (first, none) = try await made(store, 1, audience: "user == 'anna'")
        logs.published(first, read, after: none)
        #expect(try await logs.log(of: AppSerial(1)).live.serialsInOrder == [first.serial])
        #expect(logs.reads == 1)
        let (second, previous) = try await made(store, 2, audience: "user == 'bela'")
        let others = try ParameterRules(
            .object([.init(name: "parameters", value: .object([.init(name: "region", value: .string("string"))]))]))
        let foreign = UpdateLogs.ReadAudience(audience: try logs.audience("user == 'bela'", by: others), rules: others)
        logs.published(second, foreign, after: previous)
        #expect(try await logs.log(of: AppSerial(1)).live.serialsInOrder == [first.serial, second.serial])
        #expect(logs.reads == 2)
    }

    @Test func `rules apply to the next reading of a log, with any caller that set them`() async throws {
        let store = try await store(apps: 1)
        let logs = UpdateLogs(store: store, documents: AppDocuments(store: store), language: language)
        let first = try await logs.log(of: AppSerial(1))
        #expect(first.rules == ParameterRules() && first.version == 0)
        let key = AppDocument.Key(.parameterRules, of: AppSerial(1))
        let document = Array(#"{"parameters":{"region":"string"}}"#.utf8)
        let version = try #require(try await store.putDocument(document, as: key, at: Self.start))
        let second = try await logs.log(of: AppSerial(1))
        #expect(second.rules != ParameterRules() && second.version == version.rawValue)
        _ = try await store.createApp(try #require(AppID("com.example.other")), at: Self.start)
        #expect(try await logs.log(of: AppSerial(1)).version == second.version)
        #expect(logs.reads == 2)
    }

    @Test func `of the audiences of ended updates the oldest are removed`() throws {
        var audiences = OtherAudiences()
        func update(_ serial: Int64, bytes: Int) -> Update {
            Update(
                serial: UpdateSerial(serial), id: UpdateID(Bytes16(high: 1, low: UInt64(serial))), app: AppSerial(1),
                kind: .content, audience: String(repeating: "x", count: bytes), mode: .once, orderKey: nil, supersedes: nil,
                publishedAt: Self.start, expiresAt: Self.start, status: .expired, statusAt: Self.start, body: [],
                content: SharedContentID(1))
        }
        let rules = ParameterRules()
        for serial in 1...201 as ClosedRange<Int64> { audiences.note(.everyone, of: update(serial, bytes: 10), by: rules) }
        #expect(audiences.updates.count == 200 && audiences.updates.first == UpdateSerial(2) && audiences.bytes == 2000)
        audiences.note(.everyone, of: update(201, bytes: 10), by: rules)
        #expect(audiences.updates.count == 200 && audiences.bytes == 2000, "it is there once")
        audiences.note(.everyone, of: update(300, bytes: 1 << 20), by: rules)
        #expect(audiences.updates == [UpdateSerial(300)] && audiences.bytes == 1 << 20)
        audiences.note(.everyone, of: update(301, bytes: 1), by: rules)
        #expect(audiences.updates == [UpdateSerial(301)] && audiences.bytes == 1)
    }

    @Test func `of the connected devices only those are evaluated that can belong to an audience`() throws {
        let rules = try ParameterRules(
            .object([.init(name: "parameters", value: .object([.init(name: "region", value: .string("string"))]))]))
        var log = UpdateLogs.Log(
            app: AppSerial(1), rules: rules, rulesVersion: 1, version: 3, live: LiveUpdates(),
            expiredContent: UpdateSerial(0))
        func entry(_ serial: Int64, _ audience: String?) throws -> LiveUpdates.Entry {
            let update = Update(
                serial: UpdateSerial(serial), id: UpdateID(Bytes16(high: 1, low: UInt64(serial))), app: AppSerial(1),
                kind: .definitions, audience: audience, mode: .once, orderKey: nil, supersedes: nil,
                publishedAt: Self.start, expiresAt: Self.start, status: .live, statusAt: Self.start, body: [],
                content: SharedContentID(1))
            log.live.insert(update, try audience.map { .some(try Audience($0, over: rules, in: language)) } ?? .everyone)
            return try #require(log.live[update.serial])
        }
        let app = try #require(AppID("com.example.app"))
        var present = PresentDevices()
        func come(_ serial: Int64, _ region: String?) throws {
            let device = Device(
                serial: DeviceSerial(serial), id: DeviceID(Bytes16(high: 2, low: UInt64(serial))), app: AppSerial(1),
                appID: app, credentialHash: SecretHash(of: [1]), createdAt: Self.start, isAnonymous: false,
                seenAt: Self.start)
            let values = try ParameterValues(
                .object(region.map { [.init(name: "region", value: .string($0))] } ?? []), by: rules)
            let binding = UpdateBinding(
                serial: BindingSerial(serial), device: device.serial, user: nil, profile: "", revision: 1,
                parametersRevision: nil, values: values, locatedAt: nil, kinds: [], cursor: .nowhere,
                seenTo: UpdateSerial(0), needsResync: false, receivedTo: ReceivedTo(all: 0, updates: 0))
            present.note(.init(device: device, profile: "", since: Self.start), binding)
            let snapshot = EvaluationSnapshot(binding: binding.serial, revision: 1, log)
            let facts = language.facts(values, device: device.id, user: nil, app: app, by: rules)
            if region != nil { present.evaluated(device.serial, snapshot, facts) }
        }
        try come(1, "north")
        try come(2, "south")
        try come(3, nil)
        func candidates(_ entry: LiveUpdates.Entry) -> Set<Int64> {
            Set(present.candidates(for: entry, in: log).map(\.device.serial.rawValue))
        }
        #expect(candidates(try entry(1, "region == 'north'")) == [1, 3], "of the third not everything is known")
        #expect(candidates(try entry(2, nil)) == [1, 2, 3])
        #expect(candidates(try entry(3, "region.startsWith('s')")) == [2, 3])
        present.changes(DeviceSerial(2))
        #expect(candidates(try entry(4, "region == 'north'")) == [1, 2, 3], "the second becomes another")
        log.version = 4
        #expect(candidates(try entry(5, "region == 'north' && region != 'north'")) == [1, 2, 3], "under other rules")
        for serial in Int64(1)...3 { present.remove(DeviceSerial(serial)) }
        #expect(candidates(try entry(6, nil)) == [])
    }

    @Test func `a poll waits for another that evaluates the log for the same binding`() async throws {
        let world = try await UpdateWorld()
        let refresh = #"{"action":"refresh","object":"a"}"#
        try await world.publish("content", refresh)
        try await world.ask(nil, #""max":0"#)
        let store = world.routes.store
        let id = try #require(DeviceID(world.first.id))
        let device = try #require(try await store.device(id))
        let binding = try #require(try await store.presentBinding(of: device.serial)).serial
        let turns = world.routes.domain.updateDelivery.turns
        let (later, poll) = try await turns.take(binding) {
            let later = try await world.publish("content", refresh)
            // The device is connected, and is notified at once.
            try await eventually { turns.waiters(for: binding) == 1 }
            let poll = Task { try await world.poll().map(\.update) }
            try await eventually { turns.waiters(for: binding) == 2 }
            return (later, poll)
        }
        #expect(try await poll.value == [later])
    }

    @Test func `a call that waited for its turn evaluates the log for the binding as it is then`() async throws {
        let world = try await UpdateWorld()
        try await world.ask(nil, UpdateWorld.parameters(#""place":{"latitude":48.2,"longitude":16.4}"#))
        let store = world.routes.store
        let id = try #require(DeviceID(world.first.id))
        let device = try #require(try await store.device(id))
        let binding = try #require(try await store.presentBinding(of: device.serial))
        let delivery = world.routes.domain.updateDelivery
        let turns = delivery.turns
        let (later, looks, evaluate) = try await turns.take(binding.serial) {
            let later = try await world.publish()
            // The device is connected, and is notified at once.
            try await eventually { turns.waiters(for: binding.serial) == 1 }
            let evaluate = Task { try await delivery.evaluate(binding, of: device) }
            try await eventually { turns.waiters(for: binding.serial) == 2 }
            // The sweep forgets where the device was, and nothing evaluates the log afterwards.
            try await store.forgetLocations(in: .all, before: world.now, limit: 9)
            let changed = try await store.presentBinding(of: device.serial)
            #expect(changed?.revision == binding.revision + 1)
            return (later, delivery.evaluations, evaluate)
        }
        #expect(try await evaluate.value, "the first of the two calls evaluated the log")
        #expect(delivery.evaluations == looks + 1)
        #expect(try await world.counts(later) == ["waiting": 1])
        #expect(try await world.poll().map(\.update) == [later])
    }

    @Test func `a turn is repeated only if the binding changed and the log was not evaluated to its end`() async throws {
        let world = try await UpdateWorld()
        try await world.ask()
        let store = world.routes.store
        let delivery = world.routes.domain.updateDelivery
        let id = try #require(DeviceID(world.first.id))
        let device = try #require(try await store.device(id))
        let binding = try #require(try await store.presentBinding(of: device.serial))
        /// The revisions with which the body ran, if each run changes the binding or not, and returns a value.
        func revisions(changes: Bool, returns: Bool) async throws -> [Int64] {
            var revisions: [Int64] = []
            try await delivery.untilUnchanged(binding, in: device.app) { standing, _ in
                revisions.append(standing.binding.revision)
                if changes { _ = try await store.change(standing.binding, hasOtherKinds: false, at: world.now) }
                return returns
            }
            return revisions
        }
        let first = binding.revision
        #expect(try await revisions(changes: false, returns: false) == [first])
        #expect(try await revisions(changes: true, returns: true) == [first])
        let last = first + Int64(UpdateDelivery.changesInTurn)
        #expect(try await revisions(changes: true, returns: false) == Array(first + 1...last))
        try await world.ask(nil, #""profile":"other""#, position: .some(nil))
        #expect(try await revisions(changes: false, returns: true) == [], "the binding ended")
    }

    @Test func `turns of a binding follow one another, and turns of another do not wait`() async throws {
        let turns = EvaluationTurns()
        let (one, other) = (BindingSerial(1), BindingSerial(2))
        let order = Order()
        @Sendable func wait(_ number: Int) -> Task<Void, any Error> {
            Task { try await turns.take(one) { order.numbers.withLock { $0.append(number) } } }
        }
        let waiting = try await turns.take(one) {
            var waiting: [Task<Void, any Error>] = []
            for number in 1...3 {
                waiting.append(wait(number))
                try await eventually { turns.waiters(for: one) == number }
            }
            try await turns.take(other) { order.numbers.withLock { $0.append(0) } }
            return waiting
        }
        for task in waiting { try await task.value }
        #expect(order.numbers.withLock { $0 } == [0, 1, 2, 3])
        await #expect(throws: StoreFault.self) {
            try await turns.take(one) { () async throws -> Void in throw StoreFault(.unavailable, "the end of a turn") }
        }
        let isFree = try await turns.take(one) { true }
        #expect(isFree, "the turn ended with the error")
    }

    @Test func `a device that connects receives the updates that were published since its poll`() async throws {
        let world = try await UpdateWorld()
        try await world.ask(nil, UpdateWorld.parameters(#""region":"north""#))
        world.advance(seconds: 100)
        try await world.sweep()
        let update = try await world.publish(audience: "region == 'north'")
        let domain = world.routes.domain
        #expect(domain.updateDelivery.rememberedDevices == 0)
        let device = try await domain.devices.find(try #require(DeviceID(world.first.id)))
        await domain.updateDelivery.connected(device)
        #expect(try await world.counts(update) == ["waiting": 1])
        #expect(domain.updateDelivery.rememberedDevices == 1)
        // Nothing is known of a device that never polled.
        let other = try await domain.devices.find(try #require(DeviceID(try await world.device().id)))
        await domain.updateDelivery.connected(other)
        #expect(try await world.counts(update) == ["waiting": 1])
        // Due updates are delivered with it.
        let copy = try #require(try await world.poll().first)
        try await world.ask(nil, UpdateWorld.result(copy, "failed") + #","max":0"#)
        let again = try #require(try await world.poll().first)
        try await world.ask(nil, UpdateWorld.result(again, "failed") + #","max":0"#)
        #expect(try await world.counts(update) == ["failed": 1])
        world.advance(seconds: 31)
        await domain.updateDelivery.connected(device)
        #expect(try await world.counts(update) == ["waiting": 1])
    }

    @Test func `a home delivers to a device that arrives the updates that were published since its poll`() async throws {
        let world = try await UpdateWorld()
        try await world.ask(nil, UpdateWorld.parameters(#""region":"north""#))
        world.advance(seconds: 100)
        try await world.sweep()
        let update = try await world.publish(audience: "region == 'north'")
        let domain = world.routes.domain
        let device = try await domain.devices.find(try #require(DeviceID(world.first.id)))
        let feed = InboxFeed(
            of: device, homes: domain.homes, time: domain.time, limits: .init(), version: 5, logger: domain.logger)
        defer { feed.finish() }
        #expect(domain.updateDelivery.rememberedDevices == 0)
        #expect(try await world.counts(update) == [:])
        await feed.begin()
        try await eventually { try await world.counts(update) == ["waiting": 1] }
    }

    @Test func `updates follow an arrival on the executor of the session, if its connection knows updates`() async throws {
        let world = try await UpdateWorld()
        try await world.ask(nil, UpdateWorld.parameters(#""region":"north""#))
        world.advance(seconds: 100)
        try await world.sweep()
        let update = try await world.publish(audience: "region == 'north'")
        let credential = try DeviceRegistrar.credential(world.first.credential)
        let name = DeviceName.id(credential.device, credential: credential.hash)
        let home = world.routes.domain.runtime
        let connection = CountingConnection()
        for (version, begins) in [(4, false), (5, true)] {
            let arrived = try await home.arrive(
                name, .credential(credential.hash), PageRequest(after: 0, limit: 9, bytes: 1000), speaking: version,
                as: connection)
            #expect(arrived.device != nil)
            #expect((connection.jobs > 0) == begins)
            if !begins { #expect(try await world.counts(update) == [:]) }
        }
        try await eventually { try await world.counts(update) == ["waiting": 1] }
    }

    @Test func `connected devices receive one update after the other`() async throws {
        let world = try await UpdateWorld()
        try await world.ask()
        for _ in 0..<3 {
            let update = try await world.publish()
            let deadline = ContinuousClock.now + .seconds(30)
            while try await world.counts(update) != ["waiting": 1], ContinuousClock.now < deadline {
                try await Task.sleep(for: .milliseconds(2))
            }
            #expect(try await world.counts(update) == ["waiting": 1])
        }
    }

    @Test func `a poll after which nothing was published evaluates nothing`() async throws {
        let world = try await UpdateWorld()
        try await world.ask()
        let delivery = world.routes.domain.updateDelivery
        let before = delivery.evaluations
        for _ in 0..<5 { try await world.ask() }
        #expect(delivery.evaluations == before)
        let update = try await world.publish()
        #expect(try await world.poll().map(\.update) == [update])
        #expect(delivery.evaluations > before)
        let after = delivery.evaluations
        try await world.ask(nil, UpdateWorld.parameters(#""region":"north""#))
        #expect(delivery.evaluations == after + 1, "it reports other parameters")
    }
}

/// A connection that accepts nothing, and counts the work on its executor.
private final class CountingConnection: LiveSession, TaskExecutor {
    private let count = Mutex(0)

    var jobs: Int { count.withLock { $0 } }
    var executor: (any TaskExecutor)? { self }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        count.withLock { $0 += 1 }
        DispatchQueue.global().async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }

    func offer(_ envelope: Envelope) {}
    func offerVolatile(_ envelope: Envelope, answer: @escaping @Sendable (Bool) -> Void) { answer(false) }
    func storedMore() {}
    func withdrew(_ withdrawal: DeliveryMachine.Withdrawal, done: @escaping @Sendable () -> Void) { done() }
    func finished(_ ids: [MessageID]) {}
    func end(because reason: SessionEnd) {}
}

private final class Order: Sendable {
    let numbers = Mutex<[Int]>([])
}
