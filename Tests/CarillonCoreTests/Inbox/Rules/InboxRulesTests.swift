import CarillonCore
import CarillonWire
import TestSupport
import Testing

struct InboxRulesTests {
    /// Random batches over two devices with three channels, of which some end.
    private struct Scenario {
        var random: SeededRandom
        var now = Sample.now
        var position: Int64 = 0
        var known: [MessageID] = []
        var claims: Int64 = 0

        init(seed: UInt64) { random = SeededRandom(seed: seed) }

        static let channels: [(serial: ChannelSerial, device: DeviceSerial)] = [
            (ChannelSerial(1), DeviceSerial(1)), (ChannelSerial(2), DeviceSerial(1)), (ChannelSerial(3), DeviceSerial(2)),
        ]

        mutating func batch() -> [InboxOperation] {
            now = now.adding(milliseconds: Int64.random(in: 0...1500, using: &random))
            return (0..<Int.random(in: 1...12, using: &random)).map { _ in operation() }
        }

        private mutating func operation() -> InboxOperation {
            let finalOutcome = FinalOutcome(
                [.acknowledged, .failed, .cancelled, .unsupported].randomElement(using: &random) ?? .failed,
                code: [nil, 100, 301].randomElement(using: &random) ?? nil, at: now)
            switch Int.random(in: 0..<100, using: &random) {
            case 0..<55: return .append(envelope(), rules())
            case 55..<62: return .record(envelope(), rules(), finalOutcome)
            case 62..<65: return .replace(envelope(isLate: true), rules())
            case 65..<87:
                let device = [nil, DeviceSerial(1), DeviceSerial(2)].randomElement(using: &random) ?? nil
                return .finish(someID(), device: device, finalOutcome)
            case 87..<91: return .forget(someID())
            case 91..<97: return .expire(someID(), at: now)
            default:
                let channel = Self.channels.randomElement(using: &random) ?? Self.channels[0]
                guard Int.random(in: 0..<8, using: &random) == 0 else { return .expire(someID(), at: now) }
                return .end(
                    DeviceOrigin(channel.device, .channel(channel.serial)), because: .unregistered, at: now)
            }
        }

        private mutating func someID() -> MessageID {
            guard Int.random(in: 0..<20, using: &random) > 0 else {
                return Sample.id(Int64.random(in: 1...50, using: &random))
            }
            return known.suffix(30).randomElement(using: &random) ?? Sample.id(1)
        }

        /// - Parameter isLate: It arrives later than others that were created after it.
        private mutating func envelope(isLate: Bool = false) -> Envelope {
            position += 2
            let place = isLate ? position - Int64.random(in: 0...5, using: &random) * 2 - 1 : position
            let channel = Self.channels.randomElement(using: &random) ?? Self.channels[0]
            let kind: Envelope.Kind
            switch Int.random(in: 0..<200, using: &random) {
            case 0: kind = .channelClosed
            case 1: kind = .channelError(code: 250)
            case 2..<10: kind = .pingFailed(.noConnection)
            default:
                let size = Int.random(in: 0...300, using: &random)
                kind = .message(.init(body: Array(repeating: 1, count: size), coding: nil))
            }
            let ttl = [0, 1, 3, 60, 60].randomElement(using: &random) ?? 60
            let id = Sample.id(max(1, place))
            known.append(id)
            return Envelope(
                id: id, device: channel.device, app: AppSerial(1), origin: .channel(channel.serial, Sample.channelID),
                kind: kind, acceptedAt: now, expiresAt: now.adding(seconds: Int64(ttl)))
        }

        private mutating func rules() -> AppendRules {
            var rules = AppendRules(topic: [nil, nil, "a", "b"].randomElement(using: &random) ?? nil)
            if Int.random(in: 0..<4, using: &random) == 0 {
                let key = UInt8.random(in: 0..<40, using: &random)
                // Each ends at a moment of its own, so that it is clear which are the oldest.
                claims += 1
                rules.idempotency = IdempotencyClaim(
                    keyHash: [key], fingerprint: [Int.random(in: 0..<8, using: &random) == 0 ? 1 : 0],
                    validUntil: now.adding(milliseconds: 20_000 + claims % 1000))
            }
            if Int.random(in: 0..<20, using: &random) == 0 {
                rules.effects = [.vouchedFor(ChannelSerial(Int64.random(in: 1...3, using: &random)))]
            }
            return rules
        }
    }

    @Test(arguments: RandomSeed.some(60))
    func `a batch has the effect of its operations one after the other`(seed: UInt64) {
        var scenario = Scenario(seed: seed)
        let limits = InboxLimits(envelopes: 12, bytes: 3000, outcomes: 20, idempotencyKeys: 8)
        let channels = Set(Scenario.channels.map { OriginKey.channel($0.serial) })
        let notified = Set(Scenario.channels.map(\.serial))
        var naive = NaiveInbox(limits: limits, channels: channels, notified: notified)
        var tables = TableInbox(limits: limits, channels: channels, notified: notified)
        var turns = ScenarioTurns(150)
        while turns.next(unless: naive.rows.count > 5) {
            let batch = scenario.batch()
            #expect(tables.commit(batch) == naive.commit(batch), "seed \(seed)")
            guard tables.rows == naive.rows, tables.channels == naive.channels, tables.claims == naive.claims,
                tables.notified == naive.notified
            else {
                Issue.record("after this batch the rows differ, seed \(seed): \(batch)")
                return
            }
            // The running count equals the stored number.
            for device in [DeviceSerial(1), DeviceSerial(2)] {
                let waiting = naive.rows.values.filter { $0.device == device && $0.finalOutcome == nil }
                let counted = tables.usage[device] ?? .init()
                #expect(counted.envelopes == waiting.count)
                #expect(counted.bytes == waiting.reduce(0) { $0 + $1.byteCount })
                #expect(counted.outcomes == naive.rows.values.count { $0.device == device && $0.finalOutcome != nil })
                #expect(counted.keys == naive.claims.values.count { $0.device == device })
            }
            let waiting = naive.rows.values.filter { $0.finalOutcome == nil }
            #expect(tables.tally.waiting.envelopes == waiting.count)
            #expect(tables.tally.waiting.bytes == waiting.reduce(0) { $0 + $1.byteCount })
            let (accepted, ended) = (tables.tally.accepted.values, tables.tally.ended.values)
            #expect(accepted.reduce(0, +) - ended.reduce(0, +) == waiting.count)
            if Int.random(in: 0..<10, using: &scenario.random) == 0 {
                // A channel is opened again under its old number, to keep the scenario going.
                naive.channels = channels
                tables.channels = channels
                naive.notified = notified
                tables.notified = notified
            }
        }
        #expect(naive.rows.count > 5)
    }

    @Test func `a batch reports the entered envelopes, the removed ones with their outcomes, and their waiting times`() {
        let channel = OriginKey.channel(ChannelSerial(1))
        var tables = TableInbox(limits: InboxLimits(), channels: [channel], notified: [])
        _ = tables.commit((Int64(1)...4).map { .append(Sample.envelope($0), AppendRules(topic: $0 < 3 ? "t" : nil)) })
        let later = Sample.now.adding(milliseconds: 250)
        _ = tables.commit([
            .finish(Sample.id(2), device: Sample.device, FinalOutcome(.acknowledged, at: later)),
            .finish(Sample.id(3), device: nil, FinalOutcome(.cancelled, at: later)),
            .record(Sample.envelope(5), AppendRules(), FinalOutcome(.failed, code: 100, at: later)),
            .end(DeviceOrigin(Sample.device, channel), because: .unregistered, at: later),
        ])
        #expect(tables.tally.accepted == [.message: 5])
        let outcomes = Dictionary(uniqueKeysWithValues: tables.tally.ended.map { ($0.key.outcome, $0.value) })
        #expect(outcomes == [.replaced: 1, .acknowledged: 1, .cancelled: 1, .failed: 1, .gone: 1])
        #expect(tables.tally.acknowledgementDelays == [250])
        #expect(tables.tally.waiting == InboxUsage.Waiting())
    }

    @Test func `usual operations are decided by the first read`() {
        let channel = OriginKey.channel(ChannelSerial(1))
        var tables = TableInbox(limits: InboxLimits(), channels: [channel], notified: [])
        let claim = IdempotencyClaim(keyHash: [1], fingerprint: [1], validUntil: Sample.now.adding(seconds: 60))
        _ = tables.commit((Int64(1)...500).map { .append(Sample.envelope($0), AppendRules(topic: "t\($0 % 9)")) })
        _ = tables.commit([.append(Sample.envelope(501), AppendRules(idempotency: claim))])
        _ = tables.commit(
            (Int64(495)...500).map {
                .finish(Sample.id($0), device: Sample.device, FinalOutcome(.acknowledged, at: Sample.now))
            })
        #expect(tables.secondLooks == 0)
    }

    @Test func `an envelope with a topic reads outcomes only if its kind has them`() {
        let rules = InboxRules(limits: InboxLimits())
        let envelopes = [Sample.envelope(1), Sample.envelope(2, kind: .fired(body: [1], countsBadge: true))]
        let asked = envelopes.map { rules.questions(for: [.append($0, AppendRules(topic: "t"))]) }
        #expect(asked.map(\.topics.count) == [1, 1])
        #expect(asked.map(\.outcomes) == [[Sample.device], []])
    }

    @Test func `an outcome counts although its topic has an envelope without one`() {
        var tables = TableInbox(limits: InboxLimits(outcomes: 16), channels: [.channel(ChannelSerial(1))], notified: [])
        for position in stride(from: Int64(1), to: 99, by: 2) {
            let failure = Sample.envelope(position + 1, kind: .pingFailed(.noConnection))
            let rules = AppendRules(topic: "t", effects: [.vouchedFor(ChannelSerial(1))])
            tables.notified = [ChannelSerial(1)]
            _ = tables.commit([.append(Sample.envelope(position), AppendRules(topic: "t"))])
            #expect(tables.commit([.append(failure, rules)]) == [.stored(replaced: Sample.id(position))])
            let outcomes = tables.rows.values.count { $0.finalOutcome != nil }
            #expect(outcomes <= 16 && tables.usage[Sample.device]?.outcomes == outcomes)
        }
    }

    @Test func `the kinds of envelope are known by numbers that stay`() {
        #expect(EnvelopeKind.allCases.map(\.rawValue) == Array(0...11))
        #expect(Origin.Kind.allCases.map(\.rawValue) == [0, 1, 2, 3, 4])
        for kind in EnvelopeKind.allCases where kind.behaviour.keepsOutcome { #expect(kind == .message) }
        // A rule with an end outlives it.
        for kind in EnvelopeKind.allCases where kind.behaviour.endsOrigin { #expect(!kind.behaviour.endsWithOrigin) }
    }
}
