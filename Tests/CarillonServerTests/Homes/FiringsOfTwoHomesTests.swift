import CarillonBasics
import CarillonCore
import CarillonWire
import TestStores
import Testing

@testable import CarillonServer

/// Items fire for devices of their own home and of the other one.
@Suite(.timeLimit(.minutes(5)))
struct FiringsOfTwoHomesTests {
    private static let policies: [SubscriptionMachine.Policy] = [.once, .everyCrossing, .every(coolDownSeconds: 60)]

    @Test(arguments: policies)
    func `an update fires once for the devices of both homes`(policy: SubscriptionMachine.Policy) async throws {
        let world = try await ItemsOfTwoHomes()
        let item = try world.homes.item(at: 0)
        try await world.publish(1, to: item)
        for place in 0...1 { try await world.subscribe(place, [item], "price > 10.0", policy) }
        for price in [11, 12] as [Double] { try await world.publish(price, to: item) }
        for place in 0...1 { #expect(try await world.titles(place) == ["11.0"]) }
        #expect(await world.watches(1) == 0)
        #expect(try await stores.count(.firings, in: world.homes.store) == 0)
    }

    @Test func `a step sends one question to another home for all of its devices`() async throws {
        let world = try await ItemsOfTwoHomes()
        let item = try world.homes.item(at: 0)
        for number in 0..<5 { try await world.subscribe(1, [item], key: "\(number)") }
        try await world.publish(11, to: item)
        #expect(try await world.titles(1).count == 5)
        #expect(world.homes.links.map { $0.count(of: FiringDeliveries.self) } == [0, 1])
    }

    @Test(arguments: [TestLink.Loss.answer, .question], policies)
    func `a step that another home did not answer is repeated, and each device has the notification once`(
        loss: TestLink.Loss, policy: SubscriptionMachine.Policy
    ) async throws {
        let world = try await ItemsOfTwoHomes()
        let item = try world.homes.item(at: 0)
        try await world.publish(1, to: item)
        for place in 0...1 { try await world.subscribe(place, [item], "price > 10.0", policy) }
        world.homes.links[1].lose(loss, of: FiringDeliveries.self)
        try await world.publish(11, to: item)
        #expect(try await world.titles(0) == ["11.0"])
        #expect(try await world.titles(1) == (loss == .answer ? ["11.0"] : []))
        #expect(try await stores.count(.firings, in: world.homes.store) == 1)
        await #expect(throws: Refusal.self, "later firings wait") { try await world.publish(12, to: item) }

        // The other home has neither the item nor its firing.
        try await world.homes.domains[1].itemEngine.notifyRest()
        #expect(try await stores.count(.firings, in: world.homes.store) == 1)
        try await world.homes.domains[0].itemEngine.notifyRest()
        for place in 0...1 { #expect(try await world.titles(place) == ["11.0"]) }
        #expect(try await stores.count(.firings, in: world.homes.store) == 0)

        // The repetition is no refusal, after which the condition would fire again.
        try await world.publish(12, to: item)
        for place in 0...1 { #expect(try await world.titles(place) == ["11.0"]) }
        world.homes.advance(seconds: 60)
        for price in [1, 13] as [Double] { try await world.publish(price, to: item) }
        for place in 0...1 { #expect(try await world.titles(place) == (policy == .once ? ["11.0"] : ["13.0"])) }
    }

    @Test(arguments: [.answer, .question, nil] as [TestLink.Loss?])
    func `a crossing that a full inbox of another home refused fires with the next update`(
        loss: TestLink.Loss?
    ) async throws {
        let world = try await ItemsOfTwoHomes(StoreSettings(inbox: InboxLimits(envelopes: 1)))
        let (item, other) = (try world.homes.item(at: 0), try world.homes.item(at: 0, "other"))
        try await world.subscribe(1, [other], "price > 0.0")
        try await world.publish(5, to: other)
        try await world.publish(1, to: item)
        for place in 0...1 { try await world.subscribe(place, [item], "price > 10.0", .everyCrossing) }
        if let loss { world.homes.links[1].lose(loss, of: FiringDeliveries.self) }
        try await world.publish(11, to: item)
        #expect(try await world.titles(1) == ["5.0"])
        if loss != nil { try await world.homes.domains[0].itemEngine.notifyRest() }
        #expect(try await world.titles(0) == ["11.0"])
        #expect(try await world.titles(1) == ["5.0"])

        try await world.homes.acknowledgeAll(by: world.devices[1])
        for price in [12, 13] as [Double] { try await world.publish(price, to: item) }
        #expect(try await world.titles(0) == ["11.0"])
        #expect(try await world.titles(1) == ["12.0"])
    }

    @Test func `a repetition to an inbox that the first attempt filled is no refusal`() async throws {
        let world = try await ItemsOfTwoHomes(StoreSettings(inbox: InboxLimits(envelopes: 1)))
        let item = try world.homes.item(at: 0)
        try await world.publish(1, to: item)
        try await world.subscribe(1, [item], "price > 10.0", .everyCrossing)
        world.homes.links[1].lose(.answer, of: FiringDeliveries.self)
        try await world.publish(11, to: item)
        #expect(try await world.titles(1) == ["11.0"])
        try await world.homes.domains[0].itemEngine.notifyRest()
        try await world.homes.acknowledgeAll(by: world.devices[1])
        try await world.publish(12, to: item)
        #expect(try await world.titles(1).isEmpty)
    }

    @Test func `a firing that waits for its pace is delivered by the home of its device`() async throws {
        let world = try await ItemsOfTwoHomes()
        let item = try world.homes.item(at: 0)
        try await world.subscribe(1, [item], "price > 10.0", .everyCrossing, pace: FiringPace(maxFrequency: 0.5))
        for price in [11, 1, 12] as [Double] { try await world.publish(price, to: item) }
        #expect(try await world.titles(1) == ["11.0"])
        #expect(try await stores.count(.throttledFirings, in: world.homes.store) == 1)
        world.homes.advance(seconds: 2)
        #expect(try await world.homes.domains[0].firings.notifyThrottled() == nil)
        #expect(try await world.titles(1) == ["11.0"])
        #expect(try await world.homes.domains[1].firings.notifyThrottled() == nil)
        #expect(try await world.titles(1) == ["12.0"])
        #expect(try await stores.count(.throttledFirings, in: world.homes.store) == 0)
    }
}
