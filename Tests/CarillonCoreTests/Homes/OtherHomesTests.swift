import CarillonBasics
import CarillonExpression
import CarillonWire
import Testing

@testable import CarillonCore

/// Questions to other homes that answer, do not answer, or cannot be reached.
@Suite(.timeLimit(.minutes(5)))
struct OtherHomesTests {
    private static let shard = Shard(number: 700)

    /// The homes beside the first one, which has the first half of the shards. The first of them has the others.
    private func others(_ first: GatedHomes, _ homes: AskedHome...) -> OtherHomes {
        let places = [Homes.Place(first.first, local: first.first)] + homes.map { Homes.Place($0, local: nil) }
        return OtherHomes(Homes(places) { $0.number < 512 ? 0 : 1 }, beside: first.first)
    }

    @Test(arguments: [
        (HomeFault.unreachable, StoreFault.Kind.unreachable), (.moved(to: shard), .unreachable),
        (.outcomeUnknown, .outcomeUnknown),
    ])
    func `a failed request reports whether the home can have performed it`(
        fault: HomeFault, kind: StoreFault.Kind
    ) async throws {
        let others = others(try await GatedHomes(), AskedHome(fault))
        let question = FollowedSubscriptions(at: Self.shard, [], looks: false)
        let asked = await #expect(throws: StoreFault.self) { try await others.ask(question) }
        #expect(asked?.kind == kind)
        #expect(asked?.isOfHome == true)
        let each = await #expect(throws: StoreFault.self) { try await others.askEach(question) }
        #expect(each?.kind == kind)
    }

    @Test func `a home that was not informed of a stored change leaves the outcome unknown`() async throws {
        let first = try await GatedHomes()
        let homes = [
            AskedHome(.unreachable), AskedHome(.outcomeUnknown),
            AskedHome(HandOversWait.self) { _ in throw StoreFault(.full, "no") },
        ]
        for home in homes {
            let others = others(first, AskedHome(HandOversWait.self) { _ in }, home)
            let fault = await #expect(throws: StoreFault.self) { try await others.inform(of: HandOversWait()) }
            #expect(fault?.kind == .outcomeUnknown)
        }
        try await others(first, AskedHome(HandOversWait.self) { _ in }).inform(of: HandOversWait())
    }

    @Test func `the answer of a home counts also if another home does not answer`() async throws {
        let others = others(
            try await GatedHomes(), AskedHome(.unreachable), AskedHome(ItemRulesBeingSet.self) { _ in true },
            AskedHome(.outcomeUnknown))
        let results = await others.results(of: ItemRulesBeingSet(of: AppSerial(1)))
        #expect(results.count == 3)
        #expect(results.compactMap { try? $0.get() } == [true])
    }

    @Test func `a delivery without a result has failed if a home answers for fewer deliveries`() async throws {
        let first = try await GatedHomes()
        let others = others(first, AskedHome(FiringDeliveries.self) { _ in [.stored(replaced: nil)] })
        let firings = Firings(
            store: first.first.store, home: first.first, others: others,
            conditions: ItemConditions(limits: ExpressionLimits()) { _, _ in nil }, styles: .none, payloadSize: { _ in 0 },
            time: TimeSource { GatedHomes.now })
        let device = try #require((1...5000).map { DeviceSerial($0) }.first { Shard(of: $0).number >= 512 })
        let notification = FiredNotification(
            subscription: SubscriptionID(Bytes16(high: 1, low: 1)), key: nil, item: "i", at: 0, notification: .object([]))
        let delivery = FiringDelivery(
            device: device, app: AppSerial(1), origin: .device(device), notification: notification, topic: nil, ttl: 60,
            isAlwaysPushed: false, effect: .statusNotified(device, at: GatedHomes.now), at: GatedHomes.now)
        var step = FiringStep(3)
        for place in 0..<3 { firings.deliver(delivery, place, of: &step) }
        let results = await firings.results(of: step)
        #expect(results.first == .stored(replaced: nil))
        let kinds = results.dropFirst().map { result -> StoreFault.Kind? in
            if case .failed(let fault) = result { fault.kind } else { nil }
        }
        #expect(kinds == [.outcomeUnknown, .outcomeUnknown])
    }
}
