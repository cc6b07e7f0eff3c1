import CarillonCore
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(5)))
struct WeightedSemaphoreTests {
    /// Runs scheduled work when a test starts it.
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

    private func semaphore(_ limit: Int, mostWaiting: Int = 10) -> WeightedSemaphore {
        WeightedSemaphore(limit, mostWaiting: mostWaiting, scheduler: later.scheduler)
    }

    /// A request that waits.
    private func waiter(_ semaphore: WeightedSemaphore, _ units: Int) async -> Task<WeightedSemaphore.Permit?, Never> {
        let count = later.count
        let task = Task { await semaphore.take(units, within: .seconds(5)) }
        while later.count == count { await Task.yield() }
        return task
    }

    @Test func `units are acquired up to the limit, and again after their release`() {
        let semaphore = semaphore(10)
        let first = semaphore.takeAtOnce(6)
        #expect(first != nil)
        #expect(semaphore.takeAtOnce(5) == nil)
        let second = semaphore.takeAtOnce(4)
        #expect(second != nil)
        #expect(semaphore.used == 10)
        first?.release()
        first?.release()
        #expect(semaphore.used == 4)
        #expect(semaphore.takeAtOnce(6) != nil)
    }

    @Test func `a reservation that is forgotten is released, and one that shrinks in part`() {
        let semaphore = semaphore(10)
        do { _ = semaphore.takeAtOnce(10) }
        #expect(semaphore.used == 0)
        let place = semaphore.takeAtOnce(10)
        place?.shrink(to: 3)
        place?.shrink(to: 7)
        #expect(semaphore.used == 3)
    }

    @Test func `a request for more than the total gets all of it`() {
        let semaphore = semaphore(10)
        let place = semaphore.takeAtOnce(11)
        #expect(place != nil)
        #expect(semaphore.used == 10)
    }

    @Test func `waiters acquire units in the order of their requests`() async {
        let semaphore = semaphore(10)
        let all = semaphore.takeAtOnce(10)
        let first = await waiter(semaphore, 8)
        let second = await waiter(semaphore, 2)
        all?.shrink(to: 5)
        #expect(semaphore.takeAtOnce(1) == nil)
        #expect(semaphore.used == 5)
        all?.release()
        let places = (await first.value, await second.value)
        #expect(places.0 != nil && places.1 != nil)
        #expect(semaphore.used == 10)
    }

    @Test func `a waiter without units in time gets none, and others get its units`() async {
        let semaphore = semaphore(10)
        let some = semaphore.takeAtOnce(6)
        let first = await waiter(semaphore, 8)
        let second = await waiter(semaphore, 4)
        later.runFirst()
        #expect(await first.value == nil)
        let place = await second.value
        #expect(place != nil)
        #expect(semaphore.used == 10)
        later.run()
        #expect(semaphore.used == 10)
        some?.release()
        place?.release()
        #expect(semaphore.used == 0)
    }

    @Test func `one more waiter than allowed is refused at once`() async {
        let semaphore = semaphore(1, mostWaiting: 1)
        let all = semaphore.takeAtOnce(1)
        let first = await waiter(semaphore, 1)
        #expect(await semaphore.take(1, within: .seconds(5)) == nil)
        all?.release()
        #expect(await first.value != nil)
    }
}
