import CarillonCore
import CarillonWire
import TestSupport
import Testing

struct PublishRulesTests {
    private let rules = PublishRules()
    private let now = Sample.now
    private let key: (key: [UInt8], fingerprint: [UInt8]) = ([1], [2])
    private let earlier = UpdateID(Bytes16(high: 4, low: 1))

    private func request(
        audience: Int? = nil, supersedes: UpdateID? = nil, isIndexed: Bool = true,
        idempotency: (key: [UInt8], fingerprint: [UInt8])? = nil, limits: UpdateLimits = UpdateLimits()
    ) -> UpdateRequest {
        let definition = Update.Definition(
            kind: .popup, payload: [1], audience: audience.map { String(repeating: "x", count: $0) }, mode: .once,
            ttlSeconds: 1000, orderKey: nil, supersedes: supersedes)
        return UpdateRequest(
            proposed: UpdateID(Bytes16(high: 4, low: 9)), app: AppSerial(1), key: KeyID(7), definition: definition,
            body: [2], isIndexed: isIndexed, idempotency: idempotency, limits: limits)
    }

    private func update(_ status: Update.Status = .live, audience: String? = nil, isPaused: Bool = false) -> Update {
        Update(
            serial: UpdateSerial(1), id: earlier, app: AppSerial(1), kind: .popup, audience: audience, mode: .once,
            orderKey: nil, supersedes: nil, isPaused: isPaused, publishedAt: now, expiresAt: now.adding(seconds: 60),
            status: status, statusAt: now, body: [1], content: SharedContentID(1))
    }

    private func facts(
        _ answered: PublishQuestion..., live: Int = 0, unindexed: Int = 0, bytes: Int = 0, superseded: Update? = nil,
        fingerprint: [UInt8]? = nil
    ) -> PublishFacts {
        var facts = PublishFacts()
        facts.answered = Set(answered)
        facts.counts = PublishFacts.Counts(live: live, unindexed: unindexed)
        facts.audienceBytes = bytes
        facts.superseded = superseded
        facts.earlier = fingerprint.map { PublishFacts.Earlier(id: earlier, fingerprint: $0) }
        return facts
    }

    @Test func `only the facts that the request names are read`() {
        let full = request(audience: 5, supersedes: earlier, idempotency: key, limits: UpdateLimits(audienceBytes: 10))
        #expect(rules.publish(full, knowing: PublishFacts(isAppDeleted: true)) == .refused(.appGone))
        #expect(rules.publish(full, knowing: facts()) == .needs(.earlier))
        #expect(rules.publish(full, knowing: facts(.earlier)) == .needs(.superseded))
        #expect(rules.publish(full, knowing: facts(.earlier, .superseded, superseded: update())) == .needs(.counts))
        let counted = facts(.earlier, .superseded, .counts, live: 1, superseded: update())
        #expect(rules.publish(full, knowing: counted) == .needs(.audienceBytes))
        #expect(rules.publish(request(), knowing: facts()) == .needs(.counts))
        #expect(rules.publish(request(), knowing: facts(.counts)) == .publishes)
    }

    @Test func `a repetition is answered before limits are compared`() {
        let again = request(supersedes: earlier, idempotency: key)
        #expect(rules.publish(again, knowing: facts(.earlier, fingerprint: [2])) == .repeated(earlier))
        #expect(rules.publish(again, knowing: facts(.earlier, fingerprint: [3])) == .refused(.keyReused))
        var known = facts(.earlier)
        known.earlier = PublishFacts.Earlier(id: earlier, fingerprint: nil)
        #expect(rules.publish(again, knowing: known) == .refused(.keyReused))
    }

    @Test func `only a live update is superseded, and makes space`() {
        let request = request(supersedes: earlier, limits: UpdateLimits(live: 3))
        func verdict(_ superseded: Update?, live: Int) -> PublishRules.Verdict {
            rules.publish(request, knowing: facts(.superseded, .counts, live: live, superseded: superseded))
        }
        #expect(verdict(update(), live: 3) == .publishes)
        #expect(verdict(update(), live: 4) == .refused(.tooMany))
        #expect(verdict(nil, live: 0) == .refused(.supersededUnknown))
        for status in [Update.Status.superseded, .withdrawn, .expired] {
            #expect(verdict(update(status), live: 1) == .refused(.supersededUnknown))
        }
    }

    @Test func `an app has a limited number of live updates, and of those without an index`() {
        let limits = UpdateLimits(live: 3, unindexed: 2)
        func verdict(_ live: Int, _ unindexed: Int, isIndexed: Bool) -> PublishRules.Verdict {
            rules.publish(
                request(isIndexed: isIndexed, limits: limits), knowing: facts(.counts, live: live, unindexed: unindexed))
        }
        #expect(verdict(2, 2, isIndexed: true) == .publishes)
        #expect(verdict(3, 0, isIndexed: true) == .refused(.tooMany))
        #expect(verdict(2, 1, isIndexed: false) == .publishes)
        #expect(verdict(2, 2, isIndexed: false) == .refused(.tooManyUnindexed))
    }

    @Test func `bytes are read only if the audiences can have too many`() {
        let most = UpdateLimits.audienceBytes
        func verdict(_ limit: Int, live: Int, audience: Int? = 1) -> PublishRules.Verdict {
            let request = request(audience: audience, limits: UpdateLimits(audienceBytes: limit))
            return rules.publish(request, knowing: facts(.counts, live: live))
        }
        #expect(verdict(2 * most, live: 1) == .publishes)
        #expect(verdict(2 * most - 1, live: 1) == .needs(.audienceBytes))
        #expect(verdict(0, live: 9, audience: nil) == .publishes)
    }

    @Test func `an update that is superseded makes room for bytes, unless it is paused`() {
        func verdict(_ bytes: Int, _ superseded: Update? = nil) -> PublishRules.Verdict {
            let request = request(audience: 4, supersedes: superseded?.id, limits: UpdateLimits(audienceBytes: 10))
            return rules.publish(
                request,
                knowing: facts(.superseded, .counts, .audienceBytes, live: 1, bytes: bytes, superseded: superseded))
        }
        #expect(verdict(6) == .publishes)
        #expect(verdict(7) == .refused(.tooManyAudienceBytes))
        #expect(verdict(9, update(audience: "üx")) == .publishes)
        #expect(verdict(10, update(audience: "üx")) == .refused(.tooManyAudienceBytes))
        #expect(verdict(7, update(audience: "üx", isPaused: true)) == .refused(.tooManyAudienceBytes))
    }

    @Test func `a paused update is resumed if its audience has room`() {
        let paused = update(audience: "üx", isPaused: true)
        func verdict(_ update: Update, isPaused: Bool = true, _ bytes: Int? = nil) -> PublishRules.ResumeVerdict {
            rules.resume(update, audienceBytes: 10, isPaused: isPaused, knowing: bytes)
        }
        #expect(verdict(paused, isPaused: false) == .refused(.notPaused))
        #expect(verdict(update(isPaused: true)) == .resumes)
        #expect(verdict(paused) == .needsAudienceBytes)
        #expect(verdict(paused, 7) == .resumes)
        #expect(verdict(paused, 8) == .refused(.tooManyAudienceBytes))
    }

    // MARK: Random requests

    @Test func `the live updates of an app are within its limits`() {
        var random = SeededRandom.forTest()
        var (published, refused) = (0, 0)
        var turns = ScenarioTurns(300)
        while turns.next(unless: published > 500 && refused > 500) {
            let limits = UpdateLimits(
                live: Int.random(in: 1...6, using: &random), unindexed: Int.random(in: 0...3, using: &random),
                audienceBytes: Int.random(in: 10...60, using: &random))
            var live: [(bytes: Int, isIndexed: Bool)] = []
            for _ in 0..<20 {
                let (bytes, isIndexed) = (Int.random(in: 1...20, using: &random), Bool.random(using: &random))
                let fits =
                    live.count < limits.live && (isIndexed || live.count { !$0.isIndexed } < limits.unindexed)
                    && live.reduce(bytes) { $0 + $1.bytes } <= limits.audienceBytes
                let known = facts(
                    .counts, .audienceBytes, live: live.count, unindexed: live.count { !$0.isIndexed },
                    bytes: live.reduce(0) { $0 + $1.bytes })
                let verdict = rules.publish(request(audience: bytes, isIndexed: isIndexed, limits: limits), knowing: known)
                #expect((verdict == .publishes) == fits)
                if fits { live.append((bytes, isIndexed)) }
                if fits { published += 1 } else { refused += 1 }
                if Int.random(in: 0..<4, using: &random) == 0, !live.isEmpty { live.removeFirst() }
            }
        }
        #expect(published > 500 && refused > 500)
    }
}
