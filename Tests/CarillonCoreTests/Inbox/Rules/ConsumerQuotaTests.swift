import CarillonCore
import CarillonWire
import Testing

/// The quota of a consumer in the inbox of a provider: two of twenty envelopes, and 10,000 of 100,000 bytes.
struct ConsumerQuotaTests {
    private let rules = InboxRules(limits: InboxLimits(envelopes: 20, bytes: 100_000))
    private let device = DeviceSerial(1)
    private let now = Sample.now
    private let step = Effect.request(.received(RequestSerial(5)))
    private var quotaKey: ConsumerQuotaKey { ConsumerQuotaKey(device, of: DeviceSerial(2)) }

    private var envelope: Envelope {
        Envelope(
            id: Sample.id(5), device: device, app: AppSerial(1),
            origin: Origin(.request, serial: 5, id: Bytes16(high: 6, low: 5)), kind: .service(.request, body: [1]),
            acceptedAt: now, expiresAt: now.adding(seconds: 60))
    }

    /// - Parameter stored: The waiting envelopes of the consumer; nil before the rules read them.
    private func verdict(_ waiting: InboxUsage.Waiting, stored: InboxUsage.Waiting? = nil) -> InboxRules.Verdict {
        let operation = InboxOperation.append(envelope, AppendRules(effects: [step], consumer: quotaKey.consumer))
        var (asked, facts) = (rules.questions(for: [operation]), InboxFacts())
        facts.origins = [envelope.origin.key]
        facts.effects = [step]
        facts.usage[device] = InboxUsage(waiting: waiting)
        if let stored {
            asked.consumers[quotaKey] = now
            facts.consumers[quotaKey] = stored
        }
        return rules.decide([operation], knowing: facts, asked: asked)
    }

    private func results(_ verdict: InboxRules.Verdict) -> [InboxResult]? {
        if case .decided(let results, _) = verdict { results } else { nil }
    }

    @Test func `the quota of a consumer is not checked while the whole inbox would fit into it`() {
        var question = InboxQuestions()
        question.consumers = [quotaKey: now]
        let most = 10_000 - envelope.byteCount
        #expect(results(verdict(.init())) == [.stored(replaced: nil)])
        #expect(results(verdict(.init(envelopes: 1, bytes: most))) == [.stored(replaced: nil)])
        #expect(verdict(.init(envelopes: 2, bytes: most)) == .needs(question))
        #expect(verdict(.init(envelopes: 1, bytes: most + 1)) == .needs(question))
    }

    @Test func `a consumer has its quota and no more in an inbox that others fill`() {
        let waiting = InboxUsage.Waiting(envelopes: 10, bytes: 50_000)
        let most = 10_000 - envelope.byteCount
        #expect(results(verdict(waiting, stored: .init(envelopes: 1, bytes: most))) == [.stored(replaced: nil)])
        #expect(results(verdict(waiting, stored: .init(envelopes: 2, bytes: most))) == [.quotaFull])
        #expect(results(verdict(waiting, stored: .init(envelopes: 1, bytes: most + 1))) == [.quotaFull])
    }
}
