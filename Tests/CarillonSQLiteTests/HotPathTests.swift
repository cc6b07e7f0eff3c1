import CarillonCore
import CarillonWire
import Foundation
import GRDB
import TestStores
import TestSupport
import Testing

@testable import CarillonSQLite
@testable import StoreConformance

/// The statements of hot paths, as the table in docs/architecture.md has them.
@Suite(.timeLimit(.minutes(5)))
struct HotPathTests {
    /// The paths, as the page names them.
    private enum Path: String, CaseIterable {
        case publish = "message to an absent device that the home knows"
        case publishUnknown = "the same, device with a push token that the home does not know"
        case acknowledged = "live message, acknowledged in time"
        case emptyPoll = "empty poll"
        case pollWithUpdate = "poll with one update"
        case registration = "registration with a channel"
        case registrationWithToken = "the same with a push token"
        case itemUpdate = "item update that fires"
        case itemUpdateFurther = "the same, for each further 256"
        case refusedStep = "step of a firing whose crossings do not fit"
        case wake = "wake, leased and ended"
        case request = "request of a service"
        case reply = "reply of a service"
    }

    /// The statements of a path. A statement that runs several times in one call of the store counts once.
    private struct Trace {
        let store: SQLiteStore
        private(set) var statements: [String] = []
        /// How often they ran.
        private(set) var executions = 0

        init(_ store: SQLiteStore) { self.store = store }

        /// Runs one call of the store.
        @discardableResult
        mutating func run<Value>(_ work: () async throws -> Value) async throws -> Value {
            let (value, seen) = try await store.tracing(work)
            statements += Set(seen).sorted()
            executions += seen.count
            return value
        }

        /// Runs code of the server, which calls the store several times. Each execution counts.
        @discardableResult
        mutating func runAll<Value>(_ work: () async throws -> Value) async throws -> Value {
            let (value, seen) = try await store.tracing(work)
            statements += seen
            executions += seen.count
            return value
        }
    }

    private let start = StoreFixture.start
    private static let many: Int64 = 256

    // MARK: The table

    /// The numbers of statements of each path: for one row, and for 256; nil if the page has none.
    private static func table() throws -> [String: (one: Int?, many: Int?)] {
        let page = try String(contentsOf: PageCode.root.appending(path: "docs/architecture.md"), encoding: .utf8)
        let row = #/\| (?<path>[^|\n]+) \| (?<one>\d+) \| (?<many>\d+|–) \| [^|\n]+ \| [^|\n]+ \|/#
        let rows = page.matches(of: row).map { (String($0.path), (one: Int($0.one), many: Int($0.many))) }
        return Dictionary(rows) { first, _ in first }
    }

    private func check(_ path: Path, _ one: Trace, _ many: Trace? = nil) throws {
        let row = try #require(try Self.table()[path.rawValue], "the page has no row")
        #expect(one.statements.count == row.one, "\(path): \(one.statements.joined(separator: "\n"))")
        let statements = many?.statements ?? []
        #expect(many.map { $0.statements.count } == row.many, "256 × \(path): \(statements.joined(separator: "\n"))")
        guard let many else { return }
        let most = many.statements.count * Int(Self.many)
        #expect(many.executions <= most, "256 × \(path): \(many.executions) executions")
    }

    @Test func `the page has a row for each path`() throws {
        let paths = try Self.table().keys.sorted()
        #expect(paths == Path.allCases.map(\.rawValue).sorted())
    }

    /// Adds devices of an app with a channel each.
    private func channels(_ count: Int64, haveTokens: Bool, in fixture: StoreFixture) async throws -> [PushChannel] {
        var channels: [PushChannel] = []
        for number in 1...count {
            let device = try await device(number, hasToken: haveTokens, in: fixture)
            channels.append(try await StoreFixture.open(1, of: device, in: fixture.store))
        }
        return channels
    }

    private func device(_ number: Int64, hasToken: Bool, in fixture: StoreFixture) async throws -> Device {
        let new = NewDevice(
            DeviceID(Bytes16(high: 9, low: UInt64(number))), app: try StoreFixture.appID,
            profile: hasToken ? try PushFixture.profile(String(0x1000 + number, radix: 16)) : nil)
        let secret: [UInt8] = [9, UInt8(number / 256), UInt8(number % 256)]
        return try #require(try await fixture.insert(new, secret: secret))
    }

    // MARK: Messages

    @Test func `message to an absent device that the home knows`() async throws {
        func trace(_ count: Int64) async throws -> Trace {
            let fixture = try await StoreFixture(.memory)
            let channels = try await channels(count, haveTokens: false, in: fixture)
            let before = zip(Int64(1)..., channels).map { position, channel in
                InboxOperation.append(fixture.envelope(position, on: channel), AppendRules())
            }
            _ = try await fixture.store.commit(before)
            let operations = zip((count + 1)..., channels).map { position, channel in
                InboxOperation.append(fixture.envelope(position, on: channel), AppendRules())
            }
            var trace = Trace(fixture.sqlite)
            let results = try await trace.run { try await fixture.store.commit(operations) }
            #expect(results.count == Int(count) && results.allSatisfy { $0 == .stored(replaced: nil) })
            return trace
        }
        try check(.publish, try await trace(1), try await trace(Self.many))
    }

    @Test func `message to a device with a push token that the home does not know`() async throws {
        func trace(_ count: Int64) async throws -> Trace {
            let fixture = try await StoreFixture(.memory)
            let store = fixture.sqlite
            let channels = try await channels(count, haveTokens: true, in: fixture)
            // The due envelopes in this range of positions were noted with a message to another device.
            _ = try await fixture.append(fixture.envelope(1))
            let rules = AppendRules(wake: WakeRequest(.background, dueAt: start))
            let operations = zip(Int64(2)..., channels).map { position, channel in
                InboxOperation.append(fixture.envelope(position, on: channel), rules)
            }
            var trace = Trace(store)
            let results = try await trace.run { try await store.commit(operations) }
            #expect(results.allSatisfy { $0 == .stored(replaced: nil) })
            let wakes = try await store.rowCount(of: "wake")
            #expect(wakes == Int(count))
            return trace
        }
        try check(.publishUnknown, try await trace(1), try await trace(Self.many))
    }

    @Test func `live message that is acknowledged in time`() async throws {
        func trace(_ count: Int64) async throws -> Trace {
            let fixture = try await StoreFixture(.memory)
            let finalOutcome = FinalOutcome(.acknowledged, at: start)
            let operations = (1...1 + count).map {
                InboxOperation.record(fixture.envelope($0), AppendRules(), finalOutcome)
            }
            _ = try await fixture.store.commit([operations[0]])
            var trace = Trace(fixture.sqlite)
            try await trace.run { _ = try await fixture.store.commit(Array(operations.dropFirst())) }
            let outcomes = try await fixture.sqlite.rowCount(of: "outcome")
            #expect(outcomes == operations.count)
            return trace
        }
        try check(.acknowledged, try await trace(1), try await trace(Self.many))
    }

    // MARK: Polls

    /// The inbox of a store and the delivery of updates into it, as in a server.
    private struct UpdateWorld {
        let delivery: DeliveryWorld
        let logs: UpdateLogs
        let updates: UpdateDelivery

        init(_ fixture: StoreFixture) async throws {
            let (store, world) = (fixture.sqlite, try await DeliveryWorld(fixture))
            let clock = world.clock
            let appLogs = UpdateLogs(
                store: store, documents: AppDocuments(store: store), language: AudienceLanguage { _, _ in nil })
            delivery = world
            logs = appLogs
            updates = UpdateDelivery(
                store: store, logs: appLogs, home: world.home, limits: UpdateLimits(), time: TimeSource { clock.now },
                ticks: TickSource { 0 }, random: RandomSource { 0 })
        }

        func word(kinds: Set<String>? = nil) -> UpdateDelivery.PollReport {
            .init(
                profile: "main", kinds: kinds, parameters: nil, results: [], receivedTo: nil, offersAgain: false,
                needsResync: false)
        }

        /// The first poll of a device, after which the log of its app is known and was evaluated for the device.
        func begin(_ device: Device) async throws {
            let binding = try await updates.binding(of: device, profile: "main")
            _ = try await updates.take(word(kinds: [UpdateKind.popup.name]), from: device, binding)
        }

        func visit(_ device: Device) async throws -> PollVisit {
            let name = DeviceName.id(device.id, credential: device.credentialHash)
            let visit = try await updates.visit(of: name) { _ in true }
            return try #require(visit)
        }

        func isUpToDate(_ visit: PollVisit) async throws -> Bool {
            let binding = try #require(visit.binding)
            guard visit.isEmpty else { return false }
            return try await updates.isUpToDate(word(), by: visit.device, binding)
        }
    }

    @Test func `empty poll`() async throws {
        let fixture = try await StoreFixture(.memory)
        let world = try await UpdateWorld(fixture)
        try await world.begin(fixture.device)
        var trace = Trace(fixture.sqlite)
        let isUpToDate = try await trace.runAll { try await world.isUpToDate(try await world.visit(fixture.device)) }
        #expect(isUpToDate)
        try check(.emptyPoll, trace)
    }

    @Test func `poll with one update`() async throws {
        let fixture = try await UpdateFixture(SQLiteStores.memory)
        let device = fixture.base.device
        let world = try await UpdateWorld(fixture.base)
        try await world.begin(device)
        let update = try await fixture.publish(1)
        world.logs.published(update, after: UpdateSerial(0))
        let load = PageRequest(after: 0, limit: 100, bytes: 1 << 20)
        var trace = Trace(fixture.base.sqlite)
        let read = try await trace.runAll { () async throws -> InboxRead in
            let visit = try await world.visit(device)
            let isUpToDate = try await world.isUpToDate(visit)
            #expect(!isUpToDate)
            let binding = try #require(visit.binding)
            _ = try await world.updates.take(world.word(), from: device, binding, isAnyDue: visit.isAnyDue)
            return try await world.delivery.inbox.waiting(device: device.serial, load)
        }
        guard case .page(let page) = read else {
            Issue.record("the device is gone")
            return
        }
        #expect(page.envelopes.map(\.kind.number) == [.update])
        try check(.pollWithUpdate, trace)
    }

    // MARK: Registrations

    @Test(arguments: [nil, "aa01"])
    func `registration with a channel`(token: String?) async throws {
        let store = try SQLiteStore(inMemory: StoreSettings())
        let fixture = try await StoreFixture(store)
        let new = NewDevice(
            DeviceID(Bytes16(high: 9, low: 1)), app: try StoreFixture.appID, registration: SecretHash(of: [9]),
            profile: try token.map { try PushFixture.profile($0) })
        var trace = Trace(store)
        let inserted = try await trace.run { try await fixture.insert(new, secret: [9, 1]) }
        let device = try #require(inserted)
        // The second request has the credential of the first.
        try await trace.run { _ = try await store.device(device.id) }
        try await trace.run { _ = try await StoreFixture.open(1, of: device, in: store) }
        try check(token == nil ? .registration : .registrationWithToken, trace)
    }

    // MARK: Items

    /// Delivers a firing with the given number of targets, each at a device with a push token, in chunks as ``Firings`` does.
    private func traceFiring(_ count: Int64) async throws -> Trace {
        let fixture = try await SubscriptionFixture(SQLiteStores.memory)
        let store = fixture.base.sqlite
        let (key, definition) = (try fixture.item("a"), try SubscriptionFixture.definition())
        try await fixture.update("a")
        var subscriptions: [Subscription] = []
        for number in 1...count {
            let device = try await device(number, hasToken: true, in: fixture.base)
            let request = fixture.request(UInt64(number), definition, of: device.serial)
            subscriptions.append(try await fixture.subscribe(request))
        }
        let targets = subscriptions.map { fixture.target($0) }
        var trace = Trace(store)
        let numbers = try await trace.run { try await fixture.update("a", version: 2, firing: [targets]) }
        let number = try #require(numbers?.first)
        try await trace.run { _ = try await store.nextFiring(of: key) }
        for first in stride(from: 0, to: subscriptions.count, by: Int(Self.many)) {
            let end = min(first + Int(Self.many), subscriptions.count)
            let chunk = subscriptions[first..<end]
            let subjects = try await trace.run { try await store.subjects(chunk.map(\.serial)) }
            #expect(subjects.map(\.serial) == chunk.map(\.serial))
            let operations = zip(Int64(first + 1)..., chunk).map { position, subscription in
                let effect = Effect.fired(fixture.target(subscription), on: key.name, by: number, at: start)
                return fixture.notified(position, subscription, effect, replacing: "a", waking: .alert)
            }
            let results = try await trace.run { try await store.commit(operations) }
            #expect(results.allSatisfy { $0 == .stored(replaced: nil) })
            let handled: Int? = end < subscriptions.count ? end : nil
            try await trace.run { try await store.advance(number, to: handled, refused: []) }
        }
        let pushes = try await store.rowCount(of: "push")
        #expect(pushes == Int(count))
        return trace
    }

    @Test func `item update that fires`() async throws {
        let (one, many) = (try await traceFiring(1), try await traceFiring(Self.many))
        try check(.itemUpdate, one, many)
        // Four chunks.
        let thousand = try await traceFiring(1000)
        let row = try #require(try Self.table()[Path.itemUpdateFurther.rawValue], "the page has no row")
        let further = try #require(row.one)
        let expected = many.statements.count + 3 * further
        #expect(thousand.statements.count == expected, "\(thousand.statements.joined(separator: "\n"))")
        #expect(thousand.executions <= many.statements.count * 1000)
    }

    @Test func `step of a firing whose crossings do not fit`() async throws {
        func trace(_ count: Int64) async throws -> Trace {
            let fixture = try await SubscriptionFixture(SQLiteStores.memory)
            let store = fixture.base.sqlite
            let crossing = try SubscriptionFixture.definition(policy: .everyCrossing)
            try await fixture.update("a")
            var targets: [Firing.Target] = []
            for number in 1...count {
                let request = fixture.request(UInt64(number), crossing, limit: Int(count))
                targets.append(fixture.target(try await fixture.subscribe(request)))
            }
            let numbers = try await fixture.update("a", version: 2, firing: [targets])
            let (number, refused) = (try #require(numbers?.first), targets)
            var trace = Trace(store)
            try await trace.run { try await store.advance(number, to: nil, refused: refused) }
            let noted = try await store.numbers("SELECT count(*) FROM subscription_item WHERE last_firing = \(-number)")
            #expect(noted == [count])
            return trace
        }
        let one = try await trace(1)
        try check(.refusedStep, one, try await trace(Self.many))
        for statement in one.statements { try await expectSearches(in: statement) }
    }

    /// Checks that a statement reads no whole table, and finds rows of watched items by their whole key.
    private func expectSearches(in sql: String) async throws {
        let store = try await StoreFixture(.memory).sqlite
        let plan = try await store.group.run { db in
            let statement = try db.makeStatement(sql: "EXPLAIN QUERY PLAN " + sql)
            statement.setUncheckedArguments([])
            return try Row.fetchAll(statement).map { row in row["detail"] as String }
        }
        #expect(!plan.isEmpty && !plan.contains { $0.hasPrefix("SCAN") }, "\(plan)")
        let search = "subscription_item USING PRIMARY KEY (app=? AND item=? AND subscription=?)"
        #expect(!sql.contains("UPDATE subscription_item") || plan.contains { $0.hasSuffix(search) }, "\(plan)")
    }

    // MARK: Pushes

    @Test func `wake that is leased and ended`() async throws {
        func trace(_ count: Int64) async throws -> Trace {
            let fixture = try await StoreFixture(.memory)
            let store = fixture.sqlite
            let channels = try await channels(count, haveTokens: true, in: fixture)
            // From here on the memory has the wakes of the devices.
            let rules = AppendRules(wake: WakeRequest(.background, dueAt: start))
            let operations = zip(Int64(1)..., channels).map { position, channel in
                InboxOperation.append(fixture.envelope(position, on: channel), rules)
            }
            _ = try await store.commit(operations)
            let queue = PushQueue(app: fixture.device.app, environment: .production)
            var trace = Trace(store)
            let queues = try await trace.run { try await store.dueQueues(at: start) }
            #expect(queues == [queue])
            let leased = try await trace.run {
                try await store.leasePushes(of: queue, limit: 300, at: start, until: start.adding(seconds: 60))
            }
            let pushes = leased.pushes.count
            #expect(pushes == Int(count))
            let ends = leased.pushes.map { PushEnd($0, .handed, at: start) }
            let facts = try await trace.run { try await store.endPushes(ends) }
            #expect(facts.count == Int(count))
            return trace
        }
        try check(.wake, try await trace(1), try await trace(Self.many))
    }

    // MARK: Services

    @Test func `request and reply of a service`() async throws {
        let fixture = try await ServiceFixture(SQLiteStores.memory)
        let store = fixture.base.sqlite
        let (consumer, provider) = (try await fixture.device(1), try await fixture.device(2))
        try await fixture.offer(consumer, provider)
        let world = try await DeliveryWorld(fixture.base)
        let clock = world.clock
        let services = Services(
            store: store, documents: AppDocuments(store: store), home: world.home, others: .none,
            rateLimits: RateLimits(settings: RateLimits.Settings(), ticks: TickSource { 0 }),
            time: TimeSource { clock.now })
        let header = RequestHeader(
            id: ServiceFixture.id(1), service: try #require(ServiceID(ServiceFixture.service)),
            version: try #require(ServiceVersion("1.0")), method: try #require(MethodName("transfer")))
        let content = SealedContent(
            keyID: ServiceFixture.keys.id, sender: ServiceFixture.keys, encapsulated: Array(repeating: 4, count: 32),
            body: [7], files: 0, fileBytes: 0)
        let call = Services.Call(
            header: header, app: provider.appID, device: provider.id, content: content, fingerprint: [7])
        var trace = Trace(store)
        try await trace.runAll { _ = try await services.ask(call, by: consumer) }
        try check(.request, trace)
        trace = Trace(store)
        try await trace.runAll { try await services.reply(content, hash: [1], to: header.id, by: provider) }
        let request = try await store.serviceRequest(header.id)
        #expect(request?.state == .finished)
        try check(.reply, trace)
    }
}
