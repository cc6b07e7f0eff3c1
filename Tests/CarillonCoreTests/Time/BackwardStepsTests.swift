import CarillonCore
import Testing

struct BackwardStepsTests {
    private struct Failure: Error {}

    private let start = Timestamp(milliseconds: 1_700_000_000_000)

    /// The work at a moment: nil for none.
    private func follow(_ steps: BackwardSteps, _ seconds: Int64, fails: Bool = false) async -> Bool? {
        var wasFirst: Bool?
        try? await steps.follow(start.adding(seconds: seconds)) { isFirst in
            wasFirst = isFirst
            if fails { throw Failure() }
        }
        return wasFirst
    }

    @Test(arguments: [-300 * 86_400, -3600, -11] as [Int64])
    func `due times are corrected at the start, and once after each step back`(step: Int64) async {
        let steps = BackwardSteps()
        #expect(await follow(steps, 0) == true)
        #expect(await follow(steps, 5) == nil)
        #expect(await follow(steps, 5 + step) == false)
        #expect(await follow(steps, 6 + step) == nil)
        #expect(await follow(steps, 300 * 86_400) == nil, "a step ahead puts nothing off")
    }

    @Test func `small steps are tolerated as long as they do not add up`() async {
        let steps = BackwardSteps()
        #expect(await follow(steps, 100) == true)
        #expect(await follow(steps, 95) == nil)
        #expect(await follow(steps, 90) == nil)
        #expect(await follow(steps, 85) == false)
    }

    @Test func `failed work is retried`() async {
        let steps = BackwardSteps()
        #expect(await follow(steps, 0, fails: true) == true)
        #expect(await follow(steps, 1) == true)
        #expect(await follow(steps, -3600, fails: true) == false)
        #expect(await follow(steps, -3599) == false)
        #expect(await follow(steps, -3598) == nil)
    }
}
