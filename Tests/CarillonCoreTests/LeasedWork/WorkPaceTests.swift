import CarillonCore
import Testing

struct CallPaceTests {
    private func moment(_ milliseconds: Int64) -> Timestamp { Timestamp(milliseconds: 1_000_000 + milliseconds) }

    @Test func `no more calls are under way than allowed`() {
        var pace = WorkPace(limits: .init(underWay: 3, perSecond: 1_000_000))
        #expect(pace.freeSlots(at: moment(0)) == 3)
        pace.began(3)
        #expect(pace.freeSlots(at: moment(1000)) == 0)
        pace.ended()
        #expect(pace.freeSlots(at: moment(2000)) == 1)
    }

    @Test func `no more calls begin in a second than allowed, with any number of requests`() {
        var pace = WorkPace(limits: .init(underWay: 1_000_000, perSecond: 100))
        var begun: [Int] = []
        for millisecond in 0..<10_000 {
            let freeSlots = pace.freeSlots(at: moment(Int64(millisecond)))
            pace.began(freeSlots)
            begun.append(freeSlots)
        }
        for start in stride(from: 0, to: 9000, by: 100) {
            #expect(begun[start..<start + 1000].reduce(0, +) <= 111)
        }
        #expect(begun.reduce(0, +) >= 990)
    }

    @Test func `a pause is not made up for`() {
        var pace = WorkPace(limits: .init(underWay: 1_000_000, perSecond: 100))
        #expect(pace.freeSlots(at: moment(0)) == 10)
        pace.began(10)
        #expect(pace.freeSlots(at: moment(3_600_000)) == 10)
    }

    @Test func `a slow pace still lets a call begin, and a clock that goes back does no harm`() {
        var pace = WorkPace(limits: .init(underWay: 10, perSecond: 2))
        #expect(pace.freeSlots(at: moment(0)) == 1)
        pace.began(1)
        #expect(pace.freeSlots(at: moment(100)) == 0)
        #expect(pace.freeSlots(at: moment(-5000)) == 0)
        #expect(pace.freeSlots(at: moment(-4500)) == 1)
    }
}
