import CarillonCore
import CarillonWire
import StoreConformance
import TestStores
import TestSupport
import Testing

@testable import CarillonSQLite

/// Compares the outbox with a model, over random sequences of acknowledgements, timers, leases, answers, missing answers and other
/// tokens. Each device that must be woken is woken in time, and no other device. Each alert is shown.
@Suite(.timeLimit(.minutes(5)))
struct PushModelTests {
    @Test(arguments: RandomSeed.some(40))
    func `each device with a reason is woken, and no other`(seed: UInt64) async throws {
        var world = try await World(seed: seed)
        var steps = 0
        // Some seeds lease their first alert late.
        while steps < 150 || (world.alertsLeased == 0 && steps < 1000) {
            try await world.step()
            steps += 1
        }
        try await world.finish()
        #expect(world.alertsLeased > 0)
    }

    private struct Phone {
        var device: Device
        var channel: PushChannel
        var token = 0
        var isSuspended = false
        var isSuspendedByOperator = false
        /// The messages for which the phone is woken.
        var waiting: [Int64] = []
        /// The messages that have alerts.
        var alerts: [Int64] = []
        /// The messages whose alerts were handed over.
        var shown: Set<Int64> = []
        /// The time of the last lease of an alert; nil if the store does not have it any more.
        var alertLeasedAt: Timestamp?
        /// The time at which a wake was last handed over.
        var handedAt: Timestamp?

        var isReachable: Bool { token > 0 && !isSuspended }
    }

    private struct Flight {
        var push: LeasedPush
        var until: Timestamp
    }

    private struct World {
        let store: SQLiteStore
        let fixture: StoreFixture
        var phones: [Phone] = []
        var flights: [Flight] = []
        var now = StoreFixture.start
        var random: SeededRandom
        var position: Int64 = 100
        var tokens = 0
        /// The times at which messages expire, of messages that expire soon.
        var ends: [Int64: Timestamp] = [:]
        var alertsLeased = 0

        private static let briefSeconds: Int64 = 300

        private var queue: PushQueue { PushQueue(app: fixture.device.app, environment: .production) }

        init(seed: UInt64) async throws {
            random = SeededRandom(seed: seed)
            store = try SQLiteStore(inMemory: .init())
            fixture = try await StoreFixture(store)
            let text = AppDocument.Key(.alertText, of: fixture.device.app)
            _ = try await store.putDocument(Array("{}".utf8), as: text, at: StoreFixture.start)
            for number in 1...3 as ClosedRange<UInt64> {
                let new = NewDevice(DeviceID(Bytes16(high: 9, low: number)), app: try StoreFixture.appID)
                let device = try #require(try await fixture.insert(new, secret: [9, UInt8(number)]))
                let channel = try await StoreFixture.open(number, of: device, in: store)
                phones.append(Phone(device: device, channel: channel))
            }
            for index in 0..<2 { try await register(index) }
        }

        mutating func step() async throws {
            let index = Int.random(in: 0..<phones.count, using: &random)
            switch Int.random(in: 0..<21, using: &random) {
            case 0..<4: try await append(index)
            case 4..<7: try await acknowledge(index)
            case 7..<11: try await lease()
            case 11..<14: try await answer()
            case 14: try await register(index)
            case 15: try await operate(index)
            // The memory has nothing that the store does not have.
            case 16:
                store.memory.pushes.forgetAll()
                paceIsForgotten()
            case 17: try await requeue()
            case 18: _ = try await store.sweepPushes(at: now, forgetting: nil, limit: 3)
            default: now = now.adding(seconds: [1, 10, 61, 600, 1200, 4000].randomElement(using: &random) ?? 1)
            }
            try await check()
        }

        /// Checks that the number of alerts in memory is the number of rows.
        private func check() async throws {
            for phone in phones {
                guard let reach = store.memory.pushes[phone.device.serial], reach.queue != nil else { continue }
                let rows = try await alerts(of: phone)
                #expect(reach.alerts == rows.count)
            }
        }

        /// Returns the messages of the alerts that are in the outbox.
        private func alerts(of phone: Phone) async throws -> [Int64] {
            try await store.numbers(
                """
                SELECT last FROM push WHERE device = \(phone.device.serial.rawValue) AND kind = \(PushKind.alert.rawValue)
                    AND state IN (\(PushState.scheduled.rawValue), \(PushState.leased.rawValue)) ORDER BY serial
                """)
        }

        private func isOver(_ position: Int64) -> Bool { ends[position].map { $0 <= now } ?? false }

        private mutating func append(_ index: Int) async throws {
            let isAlert = Bool.random(using: &random)
            let isBurst = Int.random(in: 0..<3, using: &random) == 0
            let most = isAlert && isBurst ? 15 : 1
            let isBrief = isAlert && Int.random(in: 0..<4, using: &random) == 0
            var (positions, operations) = ([] as [Int64], [] as [InboxOperation])
            for _ in 0..<Int.random(in: 1...most, using: &random) {
                position += 1
                let ttl = isBrief ? Self.briefSeconds : 100_000_000
                let envelope = fixture.envelope(position, on: phones[index].channel, ttl: ttl, at: now)
                if isBrief { ends[position] = envelope.expiresAt }
                let wait: Int64 = Bool.random(using: &random) ? 10 : 0
                let request = WakeRequest(isAlert ? .alert : .background, dueAt: now.adding(seconds: wait))
                positions.append(position)
                operations.append(.append(envelope, AppendRules(wake: request)))
            }
            let before = try await alerts(of: phones[index])
            let results = try await store.commit(operations)
            let areStored = results.allSatisfy { $0 == .stored(replaced: nil) }
            #expect(areStored)
            let isShown = isAlert && phones[index].isReachable
            let room = isShown ? max(0, PushLimits.alertsPerDevice - before.count) : 0
            let shown = Array(positions.prefix(room))
            let after = try await alerts(of: phones[index])
            #expect(after == before + shown, "twenty wait, and a wake replaces the others")
            phones[index].alerts += shown
            phones[index].waiting += positions.dropFirst(room)
        }

        private mutating func acknowledge(_ index: Int) async throws {
            let all = phones[index].waiting + phones[index].alerts
            guard let which = all.randomElement(using: &random) else { return }
            let id = fixture.envelope(which, on: phones[index].channel).id
            let finalOutcome = FinalOutcome(.acknowledged, at: now)
            _ = try await store.commit([.finish(id, device: phones[index].device.serial, finalOutcome)])
            phones[index].waiting.removeAll { $0 == which }
            phones[index].alerts.removeAll { $0 == which }
        }

        private mutating func requeue() async throws {
            // Requeuing the parked pushes of a device removes the device from the memory.
            if try await store.requeueParkedPushes(of: queue.app, at: now) > 0 { paceIsForgotten() }
        }

        private mutating func paceIsForgotten() {
            for index in phones.indices { phones[index].alertLeasedAt = nil }
        }

        mutating func lease() async throws {
            let until = now.adding(seconds: LeasedPush.leaseSeconds)
            let limit = Int.random(in: 1...5, using: &random)
            for push in try await store.leasePushes(of: queue, limit: limit, at: now, until: until).pushes {
                let index = try #require(phones.firstIndex { $0.device.serial == push.device })
                let phone = phones[index]
                #expect(phone.isReachable, "an unreachable device receives no push")
                #expect(try push.token == (PushToken(hexadecimal: Self.token(phone.token))), "nor an earlier token")
                flights.removeAll { $0.until <= now }
                switch push.content {
                case .wake: leasedWake(push, phone)
                case .alert(let envelope, topic: _, badge: _): leasedAlert(push, envelope.position, index)
                }
                flights.append(Flight(push: push, until: until))
            }
        }

        private func leasedWake(_ push: LeasedPush, _ phone: Phone) {
            let isWoken = phone.waiting.contains { !isOver($0) }
            #expect(isWoken, "a device without waiting messages is not woken")
            let isUnderWay = flights.contains { $0.push.device == push.device && $0.push.content == .wake }
            #expect(!isUnderWay, "one at a time")
            if push.attempt == 1, let handedAt = phone.handedAt {
                #expect(now >= handedAt.adding(seconds: WakePace.shortestSeconds), "twenty minutes apart")
            }
        }

        private mutating func leasedAlert(_ push: LeasedPush, _ position: Int64, _ index: Int) {
            let waits = phones[index].alerts.contains(position) && !isOver(position)
            #expect(waits, "an acknowledged or expired message is not shown")
            let isUnderWay = flights.contains { $0.push.lease.work == push.lease.work }
            #expect(!isUnderWay)
            if let last = phones[index].alertLeasedAt {
                #expect(now >= last.adding(seconds: PushLimits.secondsBetweenAlerts), "one a second")
            }
            phones[index].alertLeasedAt = now
            alertsLeased += 1
        }

        private mutating func answer() async throws {
            guard let which = flights.indices.randomElement(using: &random) else { return }
            let verdicts: [PushEnd.Verdict] = [
                .handed, .handed, .handed, .again(at: now.adding(seconds: 30), isSpent: true, reason: "later"),
                .tokenDead(reason: "Unregistered", since: nil),
                .tokenDead(reason: "Unregistered", since: StoreFixture.start.adding(seconds: -1)),
                .parked(reason: "BadTopic"),
            ]
            try await end(which, verdicts.randomElement(using: &random) ?? .handed)
        }

        private mutating func end(_ which: Int, _ verdict: PushEnd.Verdict) async throws {
            let push = flights.remove(at: which).push
            let before = try await store.registration(of: push.device)?.status
            let state = try await store.endPushes([PushEnd(push, verdict, at: now)]).first
            let index = try #require(phones.firstIndex { $0.device.serial == push.device })
            switch state {
            case .handed: handed(push, index)
            case .rejected:
                let after = try await store.registration(of: push.device)?.status
                let isSuspended = before == .registered && after == .suspended(.tokenDead)
                let isCurrent = try push.token == PushToken(hexadecimal: Self.token(phones[index].token))
                #expect(!isSuspended || isCurrent)
                if isSuspended { phones[index].isSuspended = true }
            case .parked, .scheduled, nil: break
            case .leased, .cancelled, .expired: Issue.record("a push ended as \(String(describing: state))")
            }
        }

        private mutating func handed(_ push: LeasedPush, _ index: Int) {
            switch push.content {
            case .wake: phones[index].handedAt = now
            case .alert(let envelope, topic: _, badge: _): phones[index].shown.insert(envelope.position)
            }
        }

        /// Moves the alerts that a wake replaced to the waiting messages of the phone.
        private mutating func takeFolded(_ index: Int) async throws {
            let positions = try await store.numbers(
                """
                SELECT position FROM envelope WHERE device = \(phones[index].device.serial.rawValue)
                    AND wake = \(WakeMode.background.number)
                """)
            let folded = Set(positions).intersection(phones[index].alerts)
            phones[index].alerts.removeAll { folded.contains($0) }
            phones[index].waiting += folded.sorted()
        }

        private mutating func register(_ index: Int) async throws {
            tokens += 1
            var profile = DeviceProfile()
            profile.address = .init(
                platform: .apple, token: try PushToken(hexadecimal: Self.token(tokens)), environment: .production)
            let said = profile
            let result = try await store.changeRegistration(of: phones[index].device.serial, at: now) { _ in
                .reports(said, confirms: true)
            }
            _ = try #require(result).get()
            phones[index].token = tokens
            if !phones[index].isSuspendedByOperator { phones[index].isSuspended = false }
            try await takeFolded(index)
        }

        private mutating func operate(_ index: Int) async throws {
            let isSuspending = Bool.random(using: &random)
            let at = now
            let result = try await store.changeRegistration(of: phones[index].device.serial, at: at) { current in
                let changed =
                    isSuspending
                    ? RegistrationRules.suspend(current, because: .byOperator, at: at)
                    : RegistrationRules.resume(current, at: at)
                return changed.map { .becomes($0) } ?? .nothing
            }
            _ = try #require(result).get()
            phones[index].isSuspended = isSuspending
            phones[index].isSuspendedByOperator = isSuspending
            try await takeFolded(index)
        }

        private static func token(_ number: Int) -> String { "aa\(10_000 + number)" + "0" }

        /// Checks that each device that must be woken is woken in time, and that each alert is shown.
        mutating func finish() async throws {
            while !flights.isEmpty { try await end(0, .handed) }
            now = now.adding(seconds: Self.briefSeconds)
            for index in phones.indices {
                phones[index].waiting = phones[index].waiting.filter { !isOver($0) }
                phones[index].alerts = phones[index].alerts.filter { !isOver($0) }
            }
            try await requeue()
            var woken: Set<DeviceSerial> = []
            for _ in 0..<60 {
                now = now.adding(seconds: 3600)
                let until = now.adding(seconds: LeasedPush.leaseSeconds)
                let pushes = try await store.leasePushes(of: queue, limit: 1000, at: now, until: until).pushes
                woken.formUnion(pushes.filter { $0.content == .wake }.map(\.device))
                let states = try await store.endPushes(pushes.map { PushEnd($0, .handed, at: now) })
                #expect(states.count == pushes.count)
                for push in pushes {
                    let index = try #require(phones.firstIndex { $0.device.serial == push.device })
                    if push.content != .wake { alertsLeased += 1 }
                    handed(push, index)
                }
            }
            let wanted = phones.filter { $0.isReachable && !$0.waiting.isEmpty }.map(\.device.serial)
            #expect(woken == Set(wanted))
            for phone in phones where phone.isReachable {
                let missing = phone.alerts.filter { !phone.shown.contains($0) }
                #expect(missing.isEmpty)
            }
            try await check()
            let wrong = try await SQLiteStores.memory.wrongCounters(in: store)
            #expect(wrong == [])
        }
    }
}
