import CarillonBasics
import Testing

struct BackOffTests {
    @Test(
        arguments: [
            (-1, 30), (0, 30), (1, 60), (2, 120), (4, 480), (5, 900), (6, 900), (62, 900), (63, 900), (64, 900), (.max, 900),
        ] as [(Int, Int64)])
    func `each failure doubles the delay, up to the longest`(doublings: Int, delay: Int64) {
        #expect(BackOff<Int64>(first: 30, longest: 900).delay(doublings: doublings) == delay)
        #expect(
            BackOff<Duration>(first: .seconds(30), longest: .seconds(900)).delay(doublings: doublings) == .seconds(delay))
    }

    @Test func `the longest delay is not exceeded by the first, and may be any number`() {
        #expect(BackOff<Int64>(first: 10, longest: 5).delay(doublings: 0) == 5)
        #expect(BackOff<Duration>(first: .seconds(10), longest: .seconds(5)).delay(doublings: 0) == .seconds(5))
        #expect(BackOff<Int64>(first: 1, longest: .max).delay(doublings: 62) == 1 << 62)
        #expect(BackOff<Int64>(first: 1, longest: .max).delay(doublings: 63) == .max)
        #expect(BackOff<Int64>(first: 0, longest: 9).delay(doublings: 5) == 0)
    }
}
