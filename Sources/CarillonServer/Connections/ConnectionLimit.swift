import CarillonBasics
import CarillonCore
import Metrics
import NIOCore
import Synchronization

/// Counts the open connections of one kind, and enforces a limit.
final class ConnectionLimit: Sendable {
    private let count = Atomic<Int>(0)
    private let limit: Int
    private let emptied = Signal()
    private let gauge: Gauge
    private let refusedCount: Counter

    /// - Parameters:
    ///   - gauge: Shows the number of open connections.
    ///   - refused: Counts the connections beyond the limit.
    init(limit: Int, gauge: ServerMetric, refused: ServerMetric) {
        self.limit = limit
        self.gauge = gauge.gauge()
        refusedCount = refused.counter()
    }

    /// Whether one more connection is allowed. If not, the refusal is counted.
    func admits() -> Bool {
        if count.load(ordering: .relaxed) < limit { return true }
        refused()
        return false
    }

    /// Whether the number of connections, including the latest, exceeds the limit.
    var isOverfull: Bool {
        count.load(ordering: .relaxed) > limit
    }

    /// Counts a refused connection.
    func refused() { refusedCount.increment() }

    func opened() { gauge.record(count.wrappingAdd(1, ordering: .relaxed).newValue) }

    func closed() {
        let left = count.wrappingSubtract(1, ordering: .relaxed).newValue
        gauge.record(left)
        if left == 0 { emptied.send() }
    }

    /// Waits until the last connection is closed, but at most the given time.
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

    /// The delay until one of the open connections is closed. About two thousand connections are closed in a second, and all of
    /// them within the given time.
    func closingDelay(withinSeconds seconds: Int) -> TimeAmount {
        let window = min(Int64(count.load(ordering: .relaxed)) * 500, Int64(seconds) * 1_000_000)
        return .microseconds(Int64.random(in: 0...max(0, window)))
    }
}
