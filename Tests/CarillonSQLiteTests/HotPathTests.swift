import CarillonCore
import CarillonWire
import Foundation
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
        case wake = "wake, leased and ended"
        case request = "request of a service"
        case reply = "reply of a service"
    }

    /// The statements of a path. A statement that runs several times in one call of the store counts once.
    private struct Trace {
        let store: SQLiteStore
        private(set) var statements: [String] = []

        init(_ store: SQLiteStore) { self.store = store }

        @discardableResult
        mutating func run<Value>(_ work: () async throws -> Value) async throws -> Value {
            let (value, seen) = try await store.tracing(work)
            statements += Set(seen).sorted()
            return value
        }
    }

    private let start = StoreFixture.start
    private static let many: Int64 = 256

    // MARK: The table

    /// The numbers of statements of each path: for one row, and for 256; nil if the page has none.
    private static func table() throws -> [String: (one: Int?, many: Int?)] {
        let page = try String(contentsOf: PageCode.root.appending(path: "docs/architecture.md"), encoding: .utf8)
        let row = #/\| (?<path>[^|\n]+) \| (?<one>\d+) \| (?<many>\d+|–) \| [^|\n]+ \|/#
        let rows = page.matches(of: row).map { (String($0.path), (one: Int($0.one), many: Int($0.many))) }
        return Dictionary(rows) { first, _ in first }
    }

    private func check(_ path: Path, _ one: Trace, _ many: Trace? = nil) throws {
        let row = try #require(try Self.table()[path.rawValue], "the page has no row")
        #expect(one.statements.count == row.one, "\(path): \(one.statements.joined(separator: "\n"))")
        let statements = many?.statements ?? []
        #expect(many.map { $0.statements.count } == row.many, "256 × \(path): \(statements.joined(separator: "\n"))")
    }

    @Test func `the page has a row for each path`() throws {
        let paths = try Self.table().keys.sorted()
        #expect(paths == Path.allCases.map(\.rawValue).sorted())
    }

    // MARK: Messages

    @Test func `message to an absent device that the home knows`() async throws {
        func trace(_ count: Int64) async throws -> Trace {
            let fixture = try await StoreFixture(.memory)
            _ = try await fixture.append(fixture.envelope(1))
            let operations = (2...1 + count).map { InboxOperation.append(fixture.envelope($0), AppendRules()) }
            var trace = Trace(fixture.sqlite)
            let results = try await trace.run { try await fixture.store.commit(operations) }
            #expect(results.allSatisfy { $0 == .stored(replaced: nil) })
            return trace
        }
        try check(.publish, try await trace(1), try await trace(Self.many))
    }

    @Test func `message to a device with a push token that the home does not know`() async throws {
        func trace(_ count: Int64) async throws -> Trace {
            let fixture = try await PushFixture(SQLiteStores.memory)
            let store = fixture.base.sqlite
            let operations = (1...count).map { fixture.append($0) }
            store.memory.pushes.forgetAll()
            store.memory.usage.forget(fixture.device)
            var trace = Trace(store)
            let results = try await trace.run { try await store.commit(operations) }
            #expect(results.allSatisfy { $0 == .stored(replaced: nil) })
            #expect(try await store.rowCount(of: "wake") == 1)
            return trace
        }
        try check(.publishUnknown, try await trace(1), try await trace(Self.many))
    }

    @Test func `live message that is acknowledged in time`() async throws {
        func trace(_ count: Int64) async throws -> Trace {
            let fixture = try await StoreFixture(.memory)
            let settlement = Settlement(.acknowledged, at: start)
            let operations = (1...1 + count).map {
                InboxOperation.record(fixture.envelope($0), AppendRules(), settlement)
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

    private let page = InboxLoad(after: 0, limit: 100, bytes: 1 << 20)

    @Test func `empty poll`() async throws {
        let fixture = try await StoreFixture(.memory)
        var trace = Trace(fixture.sqlite)
        let arrival = try await trace.run {
            try await fixture.store.arrival(of: .id(fixture.device.id, credential: fixture.device.credentialHash), page, at: start)
        }
        #expect(arrival?.envelopes?.isEmpty == true)
        try check(.emptyPoll, trace)
    }

    @Test func `poll with one update`() async throws {
        let fixture = try await UpdateFixture(SQLiteStores.memory)
        let (store, device) = (fixture.base.sqlite, fixture.base.device)
        let binding = try await fixture.bind()
        let update = try await fixture.publish(1)
        var trace = Trace(store)
        try await trace.run { _ = try await store.arrival(of: .id(device.id, credential: device.credentialHash), page, at: start) }
        try await trace.run { _ = try await fixture.bind() }
        try await trace.run { _ = try await store.presentBinding(of: device.serial) }
        try await trace.run { _ = try await store.standing(of: binding.serial, [update.serial]) }
        let results = try await trace.run { try await store.commit([fixture.offer(1, update, to: binding)]) }
        #expect(results == [.stored(replaced: nil)])
        let place = HeldTo(update.serial, rules: 1)
        try await trace.run {
            _ = try await store.held(
                binding.serial, revision: binding.revision, to: place, isFull: false, adding: [], at: start)
        }
        let waiting = try await trace.run { try await fixture.base.waiting() }
        #expect(waiting.count == 1)
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
        try await trace.run { _ = try await StoreFixture.open(1, of: device, in: store) }
        try check(token == nil ? .registration : .registrationWithToken, trace)
    }

    // MARK: Items

    @Test func `item update that fires`() async throws {
        func trace(_ count: Int64) async throws -> Trace {
            let fixture = try await SubscriptionFixture(SQLiteStores.memory)
            let store = fixture.base.sqlite
            let (key, definition) = (try fixture.item("a"), try SubscriptionFixture.definition())
            try await fixture.update("a")
            var subscriptions: [Subscription] = []
            for number in 1...UInt64(count) {
                subscriptions.append(try await fixture.subscribe(fixture.wish(number, definition, limit: 1000)))
            }
            let targets = subscriptions.map { fixture.target($0) }
            var trace = Trace(store)
            let numbers = try await trace.run { try await fixture.update("a", version: 2, firing: [targets]) }
            let number = try #require(numbers?.first)
            try await trace.run { _ = try await store.nextFiring(of: key) }
            let operations = zip(Int64(1)..., subscriptions).map { position, subscription in
                let effect = Effect.fired(fixture.target(subscription), on: key.name, by: number, at: start)
                return fixture.told(position, subscription, effect)
            }
            let results = try await trace.run { try await store.commit(operations) }
            #expect(results.allSatisfy { $0 == .stored(replaced: nil) })
            try await trace.run { try await store.advance(number, to: nil) }
            return trace
        }
        try check(.itemUpdate, try await trace(1), try await trace(Self.many))
    }

    // MARK: Pushes

    @Test func `wake that is leased and ended`() async throws {
        func trace(_ count: Int64) async throws -> Trace {
            let fixture = try await StoreFixture(.memory)
            let store = fixture.sqlite
            for number in 1...count {
                let new = NewDevice(
                    DeviceID(Bytes16(high: 9, low: UInt64(number))), app: try StoreFixture.appID,
                    profile: try PushFixture.profile(String(0x1000 + number, radix: 16)))
                let inserted = try await fixture.insert(new, secret: [9, UInt8(number / 256), UInt8(number % 256)])
                let channel = try await StoreFixture.open(1, of: try #require(inserted), in: store)
                let rules = AppendRules(wake: WakeWish(.background, dueAt: start))
                _ = try await store.commit([.append(fixture.envelope(number, on: channel), rules)])
            }
            let lane = PushLane(app: fixture.device.app, environment: .production)
            var trace = Trace(store)
            let leased = try await trace.run {
                try await store.leasePushes(of: lane, limit: 300, at: start, until: start.adding(seconds: 60))
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
        let parties = try await fixture.parties(consumer, provider)
        let request = ServiceFixture.request(1, from: consumer, to: provider)
        var trace = Trace(store)
        let made = try await trace.run { try await store.commit([ServiceFixture.made(request, parties)]) }
        #expect(made == [.stored(replaced: nil)])
        try check(.request, trace)
        let finished = RequestStep.finished(request.serial, replyHash: [1], at: start)
        trace = Trace(store)
        let told = try await trace.run {
            try await store.commit([ServiceFixture.operation(finished, of: request, at: 2)])
        }
        #expect(told == [.stored(replaced: nil)])
        try check(.reply, trace)
    }
}
