import Testing

@testable import CarillonClient

struct AlarmTests {
    private static let start = ContinuousClock.now

    @Test func `an earlier deadline replaces the timer, and a later or equal one starts none`() {
        var alarm = Alarm<Int>()
        #expect(alarm.set(for: Self.start + .seconds(10)) { 1 } == nil)
        var isStarted = false
        for later in [10, 11] {
            let former = alarm.set(for: Self.start + .seconds(later)) {
                isStarted = true
                return 2
            }
            #expect(former == nil)
        }
        #expect(!isStarted)
        #expect(alarm.set(for: Self.start + .seconds(9)) { 3 } == 1)
        #expect(alarm.take() == 3)
    }

    @Test func `an alarm that fired is set again for any deadline`() {
        var alarm = Alarm<Int>()
        _ = alarm.set(for: Self.start) { 1 }
        #expect(alarm.take() == 1)
        #expect(alarm.take() == nil)
        #expect(alarm.set(for: Self.start + .seconds(3600)) { 2 } == nil)
        #expect(alarm.take() == 2)
    }
}
