import CarillonCore
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(5)))
struct RoomTests {
    /// Runs what was scheduled when a test says so.
    private final class Later: Sendable {
        private let work = Mutex<[@Sendable () -> Void]>([])
        var scheduler: Scheduler { Scheduler { _, work in self.work.withLock { $0.append(work) } } }
        var count: Int { work.withLock { $0.count } }

        func run() {
            let due = work.withLock { work in
                defer { work = [] }
                return work
            }
            for work in due { work() }
        }

        func runFirst() { work.withLock { $0.isEmpty ? nil : $0.removeFirst() }?() }
    }

    private let later = Later()

    private func room(_ limit: Int, mostWaiting: Int = 10) -> Room {
        Room(limit, mostWaiting: mostWaiting, scheduler: later.scheduler)
    }

    /// A request that waits.
    private func waiter(_ room: Room, _ units: Int) async -> Task<Room.Place?, Never> {
        let count = later.count
        let task = Task { await room.take(units, within: .seconds(5)) }
        while later.count == count { await Task.yield() }
        return task
    }

    @Test func `room is taken up to the limit, and again when it was given back`() {
        let room = room(10)
        let first = room.takeAtOnce(6)
        #expect(first != nil)
        #expect(room.takeAtOnce(5) == nil)
        let second = room.takeAtOnce(4)
        #expect(second != nil)
        #expect(room.used == 10)
        first?.giveBack()
        first?.giveBack()
        #expect(room.used == 4)
        #expect(room.takeAtOnce(6) != nil)
    }

    @Test func `a place that is forgotten is given back, and one that shrinks in part`() {
        let room = room(10)
        do { _ = room.takeAtOnce(10) }
        #expect(room.used == 0)
        let place = room.takeAtOnce(10)
        place?.shrink(to: 3)
        place?.shrink(to: 7)
        #expect(room.used == 3)
    }

    @Test func `a request for more than there is takes all of it`() {
        let room = room(10)
        let place = room.takeAtOnce(11)
        #expect(place != nil)
        #expect(room.used == 10)
    }

    @Test func `who waits gets room in the order of the requests, and nobody overtakes`() async {
        let room = room(10)
        let all = room.takeAtOnce(10)
        let first = await waiter(room, 8)
        let second = await waiter(room, 2)
        all?.shrink(to: 5)
        #expect(room.takeAtOnce(1) == nil)
        #expect(room.used == 5)
        all?.giveBack()
        let places = (await first.value, await second.value)
        #expect(places.0 != nil && places.1 != nil)
        #expect(room.used == 10)
    }

    @Test func `who finds no room in time gets none, and others get what he would have taken`() async {
        let room = room(10)
        let some = room.takeAtOnce(6)
        let first = await waiter(room, 8)
        let second = await waiter(room, 4)
        later.runFirst()
        #expect(await first.value == nil)
        let place = await second.value
        #expect(place != nil)
        #expect(room.used == 10)
        later.run()
        #expect(room.used == 10)
        some?.giveBack()
        place?.giveBack()
        #expect(room.used == 0)
    }

    @Test func `one more than may wait is refused at once`() async {
        let room = room(1, mostWaiting: 1)
        let all = room.takeAtOnce(1)
        let first = await waiter(room, 1)
        #expect(await room.take(1, within: .seconds(5)) == nil)
        all?.giveBack()
        #expect(await first.value != nil)
    }
}
