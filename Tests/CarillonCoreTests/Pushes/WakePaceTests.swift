import CarillonCore
import CarillonWire
import Testing

struct WakePaceTests {
    private let start = Timestamp(milliseconds: 1_700_000_000_000)

    @Test func `the first push is sent at once`() { #expect(WakePace().dueAt(start) == start) }

    @Test func `pushes that nobody answers come after 20 minutes, twice, then 1 hour, 4 hours, and daily`() {
        var pace = WakePace()
        var gaps: [Int64] = []
        var now = start
        for _ in 0..<7 {
            pace.handed(at: now)
            let next = pace.dueAt(now)
            gaps.append((next.milliseconds - now.milliseconds) / 60_000)
            now = next
        }
        #expect(gaps == [20, 20, 60, 240, 1440, 1440, 1440])
    }

    @Test func `an answer resets the pace to 20 minutes after the last push, and no less`() {
        var pace = WakePace()
        for _ in 0..<5 { pace.handed(at: start) }
        pace.answered()
        #expect(pace.dueAt(start.adding(seconds: 60)) == start.adding(seconds: 1200))
        #expect(pace.dueAt(start.adding(seconds: 1201)) == start.adding(seconds: 1201))
    }

    @Test func `the pace can be forgotten when it was answered and 20 minutes have passed`() {
        var pace = WakePace()
        #expect(pace.isForgettable(at: start))
        pace.handed(at: start)
        #expect(!pace.isForgettable(at: start.adding(seconds: 86_400)))
        pace.answered()
        #expect(!pace.isForgettable(at: start.adding(seconds: 1199)))
        #expect(pace.isForgettable(at: start.adding(seconds: 1200)))
    }

    @Test func `a clock that was set back delays nothing by more than the pause`() {
        var pace = WakePace()
        pace.handed(at: start)
        let earlier = start.adding(seconds: -86_400)
        #expect(pace.dueAt(earlier) == earlier.adding(seconds: 1200))
    }

    @Test(arguments: [
        (Urgency.veryLow, WakeMode.alert, WakeMode.none), (.low, .background, .none), (.normal, .background, .background),
        (.normal, .alert, .alert), (.high, .background, .alert), (.high, .alert, .alert), (.high, .none, .none),
        (.normal, .none, .none),
    ])
    func `a message wakes as its urgency and its channel have it`(_ urgency: Urgency, _ channel: WakeMode, _ wake: WakeMode)
    {
        #expect(urgency.wake(on: channel) == wake)
    }
}
