import CarillonCore
import Testing

@Suite(.timeLimit(.minutes(5)))
struct LogRateLimitTests {
    private typealias Key = LogRateLimit.Key
    private let key = Key(text: "cannot ask", owner: "a")
    private let minute = LogRateLimit.intervalNanoseconds

    @Test func `the first line is written, and then one a minute with the number of those that were withheld`() {
        var allowance = LogRateLimit()
        #expect(allowance.decide(key, at: 0) == .write(key, withheld: 0))
        for tick in 1...1000 { #expect(allowance.decide(key, at: Int64(tick)) == .withhold(key)) }
        #expect(allowance.decide(key, at: minute - 1) == .withhold(key))
        #expect(allowance.decide(key, at: minute) == .write(key, withheld: 1001))
        #expect(allowance.decide(key, at: minute + 1) == .withhold(key))
        #expect(allowance.decide(key, at: 2 * minute) == .write(key, withheld: 1))
    }

    @Test func `each text and each owner has a line of its own`() {
        var allowance = LogRateLimit()
        let others = [Key(text: "cannot ask", owner: "b"), Key(text: "cannot fetch", owner: "a")]
        for key in [key] + others { #expect(allowance.decide(key, at: 0) == .write(key, withheld: 0)) }
        for key in [key] + others { #expect(allowance.decide(key, at: 1) == .withhold(key)) }
    }

    @Test func `suppressed lines are due once, when their minute is over`() {
        var allowance = LogRateLimit()
        for tick in 0..<5 { _ = allowance.decide(key, at: Int64(tick)) }
        #expect(allowance.due(at: minute - 1).isEmpty)
        let due = allowance.due(at: minute)
        #expect(due.map(\.key) == [key] && due.map(\.withheld) == [4])
        #expect(allowance.due(at: minute).isEmpty)
        // That line counts as the one of this minute.
        #expect(allowance.decide(key, at: minute + 1) == .withhold(key))
        #expect(allowance.due(at: 2 * minute).map(\.withheld) == [1])
        #expect(allowance.due(at: 3 * minute).isEmpty)
        #expect(allowance.decide(key, at: 3 * minute) == .write(key, withheld: 0))
    }

    @Test func `owners beyond the limit use one line for each text`() {
        var allowance = LogRateLimit()
        for number in 0..<LogRateLimit.mostKeys { _ = allowance.decide(Key(text: "t", owner: "\(number)"), at: 0) }
        let shared = Key(text: "t", owner: "")
        #expect(allowance.decide(Key(text: "t", owner: "x"), at: 1) == .write(shared, withheld: 0))
        #expect(allowance.decide(Key(text: "t", owner: "y"), at: 2) == .withhold(shared))
        // Entries without lines for a minute make space.
        let late = Key(text: "t", owner: "z")
        #expect(allowance.decide(late, at: minute + 1) == .write(late, withheld: 0))
    }
}
