import Testing

@testable import CarillonAPNsSimulator

struct FaultPlanTests {
    private func fates(_ plan: FaultPlan, connection: Int = 1, count: UInt32 = 1000) -> [Bool] {
        var plan = plan
        return (0..<count).map { plan.rule(path: "/3/device/aa", connection: connection, stream: $0 * 2 + 1) != nil }
    }

    @Test func `a rule passes some, happens so often, and ends`() {
        var plan = FaultPlan(seed: 1)
        plan.rules = [FaultRule(.silence, skip: 2, times: 3)]
        #expect(fates(plan, count: 8) == [false, false, true, true, true, false, false, false])
    }

    @Test func `chance follows from the seed`() {
        var plan = FaultPlan(seed: 1)
        plan.rules = [FaultRule(.silence, rate: 0.1)]
        var other = FaultPlan(seed: 2)
        other.rules = plan.rules
        #expect(fates(plan) == fates(plan))
        #expect(fates(plan) != fates(other))
        #expect(fates(plan) != fates(plan, connection: 2))
        #expect((60...140).contains(fates(plan).count { $0 }))
    }

    @Test func `chance does not depend on the order of connections`() {
        var plan = FaultPlan(seed: 5)
        plan.rules = [FaultRule(.close, rate: 0.5)]
        var mixed = plan
        var first: [Bool] = []
        for stream in 0..<UInt32(50) {
            _ = mixed.rule(path: "/", connection: 2, stream: stream)
            first.append(mixed.rule(path: "/", connection: 1, stream: stream) != nil)
        }
        let alone = (0..<UInt32(50)).map { plan.rule(path: "/", connection: 1, stream: $0) != nil }
        #expect(first == alone)
    }

    @Test func `the first rule that matches wins`() {
        var plan = FaultPlan(seed: 1)
        plan.rules = [
            FaultRule(.close, pathSuffix: "bb"), FaultRule(.silence, connection: 2), FaultRule(.reject(.shutdown), times: 1),
        ]
        #expect(plan.rule(path: "/3/device/bb", connection: 2, stream: 1)?.fault == .close)
        #expect(plan.rule(path: "/3/device/aa", connection: 2, stream: 3)?.fault == .silence)
        #expect(plan.rule(path: "/3/device/aa", connection: 1, stream: 5)?.fault == .reject(.shutdown))
        #expect(plan.rule(path: "/3/device/aa", connection: 1, stream: 7) == nil)
        #expect(plan.counts == [1, 1, 1])
    }
}
