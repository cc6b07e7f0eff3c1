import CarillonCore
import Testing

@Suite(.timeLimit(.minutes(5)))
struct TurnQueueTests {
    private var queue = TurnQueue<String>(limits: .init(perOwner: 1, all: 2, waiting: 3))

    private func expect<Value: Equatable>(_ value: Value, _ expected: Value, _ location: SourceLocation = #_sourceLocation) {
        #expect(value == expected, sourceLocation: location)
    }

    @Test mutating func `one request of each owner runs at a time, and a limited number in all`() {
        expect(queue.request("a"), .granted)
        expect(queue.request("a"), .waits(1))
        expect(queue.request("b"), .granted)
        expect(queue.request("c"), .waits(2))
        // A request that cannot continue yet delays nobody behind it.
        expect(queue.end("b"), [2])
        expect(queue.end("a"), [1])
        expect(queue.end("a"), [])
        expect(queue.end("c"), [])
        expect(queue.request("d"), .granted)
    }

    @Test mutating func `waiting requests run in the order of their arrival`() {
        expect(queue.request("a"), .granted)
        for number in 1...3 { expect(queue.request("a"), .waits(number)) }
        expect(queue.request("a"), .refused)
        expect(queue.end("a"), [1])
        expect(queue.end("a"), [2])
        expect(queue.request("a"), .waits(4))
        expect(queue.end("a"), [3])
    }

    @Test mutating func `the owner whose last request was granted longest ago is next`() {
        queue = TurnQueue(limits: .init(perOwner: 1, all: 2, waiting: 9))
        expect(queue.request("a"), .granted)
        expect(queue.request("b"), .granted)
        expect(queue.request("a"), .waits(1))
        expect(queue.request("a"), .waits(2))
        expect(queue.request("b"), .waits(3))
        expect(queue.request("c"), .waits(4))
        // Nothing of the third went on yet.
        expect(queue.end("a"), [4])
        expect(queue.end("b"), [1])
        expect(queue.end("c"), [3])
        expect(queue.end("a"), [2])
    }

    @Test mutating func `the number of waiting requests of one owner is limited`() {
        queue = TurnQueue(limits: .init(perOwner: 1, all: 1, waitingPerOwner: 2, waiting: 3))
        expect(queue.request("a"), .granted)
        expect(queue.request("a"), .waits(1))
        expect(queue.request("a"), .waits(2))
        expect(queue.request("a"), .refused)
        expect(queue.request("b"), .waits(3))
        expect(queue.request("c"), .refused)
        expect(queue.giveUp(1), true)
        expect(queue.request("a"), .waits(4))
        expect(queue.end("a"), [3])
        expect(queue.end("b"), [2])
        expect(queue.request("a"), .waits(5))
    }

    @Test mutating func `an abandoned request is not granted, and leaves its place`() {
        expect(queue.request("a"), .granted)
        for number in 1...3 { expect(queue.request("a"), .waits(number)) }
        expect(queue.giveUp(1), true)
        expect(queue.giveUp(1), false)
        expect(queue.request("a"), .waits(4))
        expect(queue.end("a"), [2])
        expect(queue.giveUp(2), false)
    }
}
