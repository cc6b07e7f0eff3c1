import CarillonCore
import CarillonWire
import TestSupport
import Testing

/// Random steps, cancellations and ends, by the rules and by ``NaiveRequests``.
struct RequestScenarioTests {
    /// Requests between three devices.
    private struct Scenario {
        var random: SeededRandom
        var now = Sample.now
        private var position: Int64 = 0
        private var known: [RequestSerial] = []
        var users: [RequestPair: RequestUsers] = [:]

        init(random: SeededRandom) {
            self.random = random
            for _ in 0..<6 { changeParties() }
        }

        mutating func chance(_ count: Int) -> Bool { Int.random(in: 0..<count, using: &random) == 0 }

        mutating func device() -> DeviceSerial { DeviceSerial(Int64.random(in: 1...3, using: &random)) }

        private mutating func pair() -> RequestPair {
            let consumer = Int64.random(in: 0..<3, using: &random)
            let provider = (consumer + Int64.random(in: 1...2, using: &random)) % 3
            return RequestPair(consumer: DeviceSerial(consumer + 1), provider: DeviceSerial(provider + 1))
        }

        /// The users that a pair may have.
        private mutating func someParties() -> RequestUsers {
            let users = [UserID("ada"), UserID("bob")]
            let user = users.randomElement(using: &random) ?? nil
            let caller = user.map { ServiceReach.Caller.user($0) } ?? .server
            return RequestUsers(consumer: caller, provider: chance(4) ? nil : user)
        }

        mutating func changeParties() {
            let pair = pair()
            users[pair] = chance(8) ? nil : someParties()
        }

        mutating func serial() -> RequestSerial {
            if chance(20) { return RequestSerial(1_000_000) }
            return known.suffix(14).randomElement(using: &random) ?? RequestSerial(1)
        }

        mutating func steps() -> [RequestStep] { (0..<Int.random(in: 1...6, using: &random)).map { _ in step() } }

        private mutating func step() -> RequestStep {
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<4: return made()
            case 4..<6: return .received(serial())
            case 6: return .unwanted(serial())
            case 7: return .finished(serial(), replyHash: nil, at: now)
            default: return .finished(serial(), replyHash: [UInt8.random(in: 0..<9, using: &random)], at: now)
            }
        }

        private mutating func made() -> RequestStep {
            position += 1
            let pair = pair()
            let id = Bytes16(high: 6, low: UInt64.random(in: 0..<60, using: &random))
            let request = ServiceRequest(
                id: ServiceRequestID(id), envelope: Sample.id(position), consumer: pair.consumer,
                consumerApp: AppSerial(1), provider: pair.provider, providerApp: AppSerial(2), fingerprint: [7],
                expiresAt: now.adding(seconds: Int64.random(in: 1...200_000, using: &random)))
            known.append(request.serial)
            let other = someParties()
            return .made(request, between: chance(6) ? other : users[pair] ?? other)
        }
    }

    @Test func `a batch has the effect of its steps one after the other`() {
        var scenario = Scenario(random: .forTest())
        var naive = NaiveRequests(unfinished: 4, undelivered: 2)
        var tables = TableRequests(unfinished: 4, undelivered: 2)
        var served: Int64 = 200_000
        var counts = Counts()
        var turns = ScenarioTurns(5000)
        while turns.next(unless: counts.haveAll) {
            let pause = Int64.random(in: 0...(scenario.chance(4) ? 7200 : 60), using: &scenario.random)
            scenario.now = scenario.now.adding(seconds: pause)
            served += scenario.chance(3) ? 0 : pause
            if scenario.chance(6) { scenario.changeParties() }
            naive.users = scenario.users
            tables.users = scenario.users
            naive.served = served
            tables.served = served
            let before = naive.rows.count
            switch Int.random(in: 0..<20, using: &scenario.random) {
            case 0..<12:
                let steps = scenario.steps()
                let results = tables.perform(steps)
                let expected = steps.map { naive.perform($0) }
                #expect(results == expected, "\(steps)")
                for (step, counted) in zip(steps, expected) { counts.note(step, counted) }
            case 12..<17:
                let serial = scenario.serial()
                let isCancelled = tables.cancel(serial, at: scenario.now)
                let isExpected = naive.cancel(serial, at: scenario.now)
                #expect(isCancelled == isExpected)
                if isExpected { counts.cancelled += 1 }
                counts.excess += before - naive.rows.count
            case 17..<19:
                let device = scenario.device()
                let reason = RequestEndReason.allCases.randomElement(using: &scenario.random) ?? .userChanged
                tables.end(device, because: reason)
                naive.end(device, because: reason)
            default:
                let forgotten = tables.forget(at: scenario.now)
                let expected = naive.forget(at: scenario.now)
                #expect(forgotten == expected)
                counts.forgotten += expected
            }
            let rows = Dictionary(uniqueKeysWithValues: naive.rows.map { ($0.request.serial, $0) })
            guard tables.rows == rows else {
                Issue.record("the rows differ")
                return
            }
        }
        #expect(counts.haveAll, "\(counts)")
    }

    /// The events of a scenario.
    private struct Counts {
        var made = 0
        var received = 0
        var unwanted = 0
        var finished = 0
        var refused = 0
        var cancelled = 0
        /// Ids that were forgotten because too many were cancelled.
        var excess = 0
        var forgotten = 0

        var haveAll: Bool {
            made > 500 && received > 80 && unwanted > 40 && finished > 150 && refused > 1000 && cancelled > 60 && excess > 0
                && forgotten > 200
        }

        mutating func note(_ step: RequestStep, _ counted: Bool) {
            guard counted else {
                refused += 1
                return
            }
            switch step {
            case .made: made += 1
            case .received: received += 1
            case .unwanted: unwanted += 1
            case .finished: finished += 1
            }
        }
    }
}
