import CarillonBasics
import CarillonCore
import Metrics
import NIOCore
import Synchronization

/// How many connections of a kind there are, and how many there may be.
final class ConnectionLimit: Sendable {
    private let count = Atomic<Int>(0)
    private let limit: Int
    private let emptied = Signal()
    private let gauge: Gauge
    private let refusedCount: Counter

    /// - Parameters:
    ///   - gauge: Shows how many there are.
    ///   - refused: Counts those beyond the limit.
    init(limit: Int, gauge: ServerMetric, refused: ServerMetric) {
        self.limit = limit
        self.gauge = gauge.gauge()
        refusedCount = refused.counter()
    }

    /// Whether one more may come in.
    func admits() -> Bool {
        if count.load(ordering: .relaxed) < limit { return true }
        refused()
        return false
    }

    /// Whether more are in than may be, the last one counted.
    var isOverfull: Bool {
        count.load(ordering: .relaxed) > limit
    }

    /// One more was refused.
    func refused() { refusedCount.increment() }

    func opened() { gauge.record(count.wrappingAdd(1, ordering: .relaxed).newValue) }

    func closed() {
        let left = count.wrappingSubtract(1, ordering: .relaxed).newValue
        gauge.record(left)
        if left == 0 { emptied.send() }
    }

    /// Waits until the last socket is closed, or the time is over.
    func awaitEmpty(atMost time: Duration) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                while self.count.load(ordering: .relaxed) > 0, !Task.isCancelled { await self.emptied.wait() }
            }
            group.addTask { try? await Task.sleep(for: time) }
            await group.next()
            group.cancelAll()
        }
    }

    /// When one of all these is to be closed, so that about two thousand are closed in a second, and all within a time.
    func closingDelay(withinSeconds seconds: Int) -> TimeAmount {
        let window = min(Int64(count.load(ordering: .relaxed)) * 500, Int64(seconds) * 1_000_000)
        return .microseconds(Int64.random(in: 0...max(0, window)))
    }
}
