import CarillonCore
import CarillonWire
import StoreConformance
import TestSupport
import Testing

@testable import CarillonSQLite

/// Whatever happens in whatever order, a device that is to be woken is, in time, and no other: acknowledgements against timers,
/// leases and answers, other tokens between a lease and its answer, answers that never come.
@Suite(.timeLimit(.minutes(5)))
struct PushModelTests {
    @Test(arguments: 0..<40 as Range<UInt64>)
    func `who is to be woken is, and nobody else`(seed: UInt64) async throws {
        var world = try await World(seed: seed)
        for _ in 0..<150 { try await world.step() }
        try await world.finish()
    }

    private struct Phone {
        var device: Device
        var channel: PushChannel
        var token = 0
        var isSuspended = false
        var isSuspendedByOperator = false
        var waiting: [Int64] = []
        /// When a push was last handed over.
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

        private var lane: PushLane { PushLane(app: fixture.device.app, environment: .production) }

        init(seed: UInt64) async throws {
            random = SeededRandom(seed: seed)
            store = try SQLiteStore(inMemory: .init())
            fixture = try await StoreFixture(store)
            for number in 1...3 as ClosedRange<UInt64> {
                let new = NewDevice(DeviceID(Bytes16(high: 9, low: number)), app: try StoreFixture.appID)
                let device = try #require(try await fixture.insert(new, secret: [9, UInt8(number)]))
                let channel = try await StoreFixture.open(number, of: device, in: store)
                phones.append(Phone(device: device, channel: channel))
            }
        }

        mutating func step() async throws {
            let index = Int.random(in: 0..<phones.count, using: &random)
            switch Int.random(in: 0..<20, using: &random) {
            case 0..<4: try await append(index)
            case 4..<7: try await acknowledge(index)
            case 7..<11: try await lease()
            case 11..<14: try await answer()
            case 14: try await register(index)
            case 15: try await operate(index)
            // What is remembered is nothing more than what is stored.
            case 16: store.memory.pushes.forgetAll()
            case 17: _ = try await store.requeueParkedPushes(of: lane.app, at: now)
            default: now = now.adding(seconds: [1, 10, 61, 600, 1200, 4000].randomElement(using: &random) ?? 1)
            }
        }

        private mutating func append(_ index: Int) async throws {
            position += 1
            let envelope = fixture.envelope(position, on: phones[index].channel, ttl: 100_000_000, at: now)
            let wish = WakeWish(.background, dueAt: now.adding(seconds: Bool.random(using: &random) ? 10 : 0))
            let results = try await store.commit([.append(envelope, AppendRules(wake: wish))])
            #expect(results == [.stored(replaced: nil)])
            phones[index].waiting.append(position)
        }

        private mutating func acknowledge(_ index: Int) async throws {
            guard let which = phones[index].waiting.randomElement(using: &random) else { return }
            let id = fixture.envelope(which, on: phones[index].channel).id
            let settlement = Settlement(.acknowledged, at: now)
            _ = try await store.commit([.settle(id, device: phones[index].device.serial, settlement)])
            phones[index].waiting.removeAll { $0 == which }
        }

        mutating func lease() async throws {
            let until = now.adding(seconds: LeasedPush.leaseSeconds)
            let limit = Int.random(in: 1...5, using: &random)
            for push in try await store.leasePushes(of: lane, limit: limit, at: now, until: until).pushes {
                let index = try #require(phones.firstIndex { $0.device.serial == push.device })
                let phone = phones[index]
                #expect(phone.isReachable, "what cannot be reached is not pushed to")
                #expect(!phone.waiting.isEmpty, "who has everything is not woken")
                #expect(try push.token == (PushToken(hexadecimal: Self.token(phone.token))), "nor an earlier token")
                flights.removeAll { $0.until <= now }
                #expect(!flights.contains { $0.push.device == push.device }, "one at a time")
                if push.attempt == 1, let handedAt = phone.handedAt {
                    #expect(now >= handedAt.adding(seconds: WakePace.shortestSeconds), "twenty minutes apart")
                }
                flights.append(Flight(push: push, until: until))
            }
        }

        private mutating func answer() async throws {
            guard let which = flights.indices.randomElement(using: &random) else { return }
            let verdicts: [PushVerdict] = [
                .handed, .handed, .handed, .again(at: now.adding(seconds: 30), isSpent: true, reason: "later"),
                .tokenDead(reason: "Unregistered", since: nil),
                .tokenDead(reason: "Unregistered", since: StoreFixture.start.adding(seconds: -1)),
                .parked(reason: "BadTopic"),
            ]
            try await end(which, verdicts.randomElement(using: &random) ?? .handed)
        }

        private mutating func end(_ which: Int, _ verdict: PushVerdict) async throws {
            let push = flights.remove(at: which).push
            let fact = try await store.endPushes([PushEnd(push, verdict, at: now)]).first
            let index = try #require(phones.firstIndex { $0.device.serial == push.device })
            switch fact {
            case .handed: phones[index].handedAt = now
            case .rejected(_, let isSuspended):
                let isCurrent = try push.token == PushToken(hexadecimal: Self.token(phones[index].token))
                #expect(!isSuspended || isCurrent)
                if isSuspended { phones[index].isSuspended = true }
            case .parked, .retried, nil: break
            }
        }

        private mutating func register(_ index: Int) async throws {
            tokens += 1
            var profile = DeviceProfile()
            profile.address = .init(
                platform: .apple, token: try PushToken(hexadecimal: Self.token(tokens)), environment: .production)
            let said = profile
            let result = try await store.changeRegistration(of: phones[index].device.serial, at: now) { _ in
                .says(said, confirms: true)
            }
            _ = try #require(result).get()
            phones[index].token = tokens
            if !phones[index].isSuspendedByOperator { phones[index].isSuspended = false }
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
        }

        private static func token(_ number: Int) -> String { "aa\(10_000 + number)" + "0" }

        /// In time, each that is to be woken is.
        mutating func finish() async throws {
            while !flights.isEmpty { try await end(0, .handed) }
            _ = try await store.requeueParkedPushes(of: lane.app, at: now)
            var woken: Set<DeviceSerial> = []
            for _ in 0..<60 {
                now = now.adding(seconds: 3600)
                let until = now.adding(seconds: LeasedPush.leaseSeconds)
                let pushes = try await store.leasePushes(of: lane, limit: 10, at: now, until: until).pushes
                woken.formUnion(pushes.map(\.device))
                _ = try await store.endPushes(pushes.map { PushEnd($0, .handed, at: now) })
            }
            let wanted = phones.filter { $0.isReachable && !$0.waiting.isEmpty }.map(\.device.serial)
            #expect(woken == Set(wanted))
        }
    }
}
