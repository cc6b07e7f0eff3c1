import CarillonCore
import CarillonWire
import Testing

struct EffectTests {
    /// Effects that differ from each other in at least one value.
    private func effects() throws -> [Effect] {
        let (now, later) = (Sample.now, Sample.now.adding(seconds: 1))
        let one = try #require(ItemName("a"))
        let other = try #require(ItemName("b"))
        let target = Firing.Target(subscription: SubscriptionSerial(1), revision: 1)
        let rearmed = Firing.Target(subscription: SubscriptionSerial(1), revision: 2)
        let key = CompletionKey(update: UpdateSerial(1), binding: BindingSerial(1), entry: 1)
        var effects: [Effect] = [
            .pinged(WatchSample.record()), .pinged(WatchSample.record(revision: 5)),
            .vouchedFor(ChannelSerial(1)), .vouchedFor(ChannelSerial(2)),
            .statusNotified(DeviceSerial(1), at: now), .statusNotified(DeviceSerial(1), at: later),
            .throttledNotified(1, at: now), .throttledNotified(1, at: later),
        ]
        effects += [
            .fired(target, on: one, by: 1, at: now), .fired(target, on: one, by: 1, at: later),
            .fired(target, on: other, by: 1, at: now), .fired(rearmed, on: one, by: 1, at: now),
        ]
        for attempt in 1...2 {
            let offer = UpdateOffer(key: key, revision: 1, attempt: attempt, orderKey: nil, at: now)
            effects.append(.updateOffered(offer))
        }
        effects += [.updateRetracted(key, as: .withdrawn, at: now), .updateRetracted(key, as: .expired, at: now)]
        let request = RequestSerial(1)
        effects += [
            .request(.received(request)), .request(.unwanted(request)),
            .request(.finished(request, replyHash: [1], at: now)), .request(.finished(request, replyHash: nil, at: now)),
        ]
        return effects
    }

    @Test func `an effect is found among others by all its values`() throws {
        let all = try effects()
        let repeated = try effects()
        #expect(all == repeated)
        #expect(Set(all).count == all.count)
        #expect(Set(all + repeated).count == all.count)
    }
}
