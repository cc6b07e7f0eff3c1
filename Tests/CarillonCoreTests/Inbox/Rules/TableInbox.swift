import CarillonCore
import CarillonWire

/// A store in dictionaries, which reads the facts that the rules request and writes the changes that they return.
struct TableInbox {
    let rules: InboxRules
    var rows: [Int64: InboxRow] = [:]
    var channels: Set<OriginKey>
    var claims: [ClaimKey: UsedClaim] = [:]
    /// Channels whose backend was reported as unreachable.
    var notified: Set<ChannelSerial>
    /// All changes, from the beginning.
    var usage: [DeviceSerial: InboxUsage.Change] = [:]
    /// How often the rules had to ask again.
    var secondLooks = 0
    var tally = InboxTally()

    init(limits: InboxLimits, channels: Set<OriginKey>, notified: Set<ChannelSerial>) {
        rules = InboxRules(limits: limits)
        self.channels = channels
        self.notified = notified
    }

    mutating func commit(_ operations: [InboxOperation]) -> [InboxResult] {
        var asked = rules.questions(for: operations)
        var facts = InboxFacts()
        answer(asked, into: &facts)
        while true {
            switch rules.decide(operations, knowing: facts, asked: asked) {
            case .needs(let more):
                secondLooks += 1
                asked.formUnion(more)
                answer(more, into: &facts)
            case .decided(let results, let changes):
                write(changes)
                tally.add(changes.tally)
                return results
            }
        }
    }

    private func answer(_ questions: InboxQuestions, into facts: inout InboxFacts) {
        facts.origins.formUnion(questions.origins.intersection(channels))
        for origin in questions.originContents { facts.originContents[origin] = contents(of: origin) }
        for position in questions.rows { facts.rows[position] = rows[position] }
        for topic in questions.topics {
            guard let row = waiting.first(where: { $0.deviceOrigin == topic.origin && $0.topic == topic.topic }) else {
                continue
            }
            facts.topics[topic] = row.position
            facts.rows[row.position] = row
        }
        for key in questions.claims { facts.claims[key] = claims[key] }
        for device in questions.waiting {
            let mine = waiting.filter { $0.device == device }
            facts.usage[device, default: .init()].waiting = .init(
                envelopes: mine.count, bytes: mine.reduce(0) { $0 + $1.byteCount })
        }
        for device in questions.outcomes { facts.usage[device, default: .init()].outcomes = outcomes(of: device).count }
        for device in questions.keys {
            facts.usage[device, default: .init()].keys = claims.values.filter { $0.device == device }.count
        }
        for (device, moment) in questions.overdue {
            facts.overdue[device] = waiting.filter { $0.device == device && $0.waitsUntil <= moment }
        }
        facts.effects.formUnion(questions.effects.filter { notified.isSuperset(of: [$0].vouchedChannels) })
    }

    var waiting: [InboxRow] { rows.values.filter { $0.finalOutcome == nil } }

    private func outcomes(of device: DeviceSerial) -> [InboxRow] {
        rows.values.filter { $0.device == device && $0.finalOutcome != nil }.sorted { $0.position < $1.position }
    }

    private func ending(with origin: DeviceOrigin) -> [InboxRow] {
        waiting.filter { $0.deviceOrigin == origin && $0.kind.behaviour.endsWithOrigin }
    }

    private func contents(of origin: DeviceOrigin) -> OriginContents {
        ending(with: origin).reduce(into: OriginContents()) { $0.add($1) }
    }

    private mutating func write(_ changes: InboxChanges) {
        notified.subtract(changes.effects.vouchedChannels)
        for row in changes.departures {
            precondition(rows[row.position]?.finalOutcome == nil && rows[row.position] != nil, "nothing waited there")
            rows[row.position] = nil
        }
        for row in changes.outcomes {
            precondition(rows[row.position] == nil && row.finalOutcome != nil, "there was something there")
            rows[row.position] = row
        }
        for end in changes.ends {
            channels.remove(end.origin.origin)
            for row in ending(with: end.origin) {
                rows[row.position] = nil
                guard row.kind.behaviour.keepsOutcome else { continue }
                var ended = row
                ended.finalOutcome = row.waitsUntil <= end.at ? row.timeOver : FinalOutcome(.gone, at: end.at)
                rows[row.position] = ended
            }
        }
        for arrival in changes.arrivals {
            precondition(rows[arrival.row.position] == nil, "there was something there")
            rows[arrival.row.position] = arrival.row
        }
        for (position, code) in changes.amendments { rows[position]?.finalOutcome?.code = code }
        claims.merge(changes.claims) { $1 }
        for (device, count) in changes.forgottenOutcomes {
            for row in outcomes(of: device).prefix(count) { rows[row.position] = nil }
        }
        for (device, count) in changes.forgottenKeys {
            let mine = claims.filter { $0.value.device == device }.sorted { $0.value.validUntil < $1.value.validUntil }
            for key in mine.prefix(count) { claims[key.key] = nil }
        }
        for (device, change) in changes.usage {
            usage[device, default: .init()].envelopes += change.envelopes
            usage[device, default: .init()].bytes += change.bytes
            usage[device, default: .init()].outcomes += change.outcomes
            usage[device, default: .init()].keys += change.keys
        }
    }
}
