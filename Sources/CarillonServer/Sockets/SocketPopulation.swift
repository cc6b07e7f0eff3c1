import Metrics
import NIOCore
import Synchronization

/// How many sockets there are.
final class SocketPopulation: Sendable {
    private let count = Atomic<Int>(0)
    private let limit: Int
    private let gauge = Gauge(label: "carillon_sockets")
    private let refused = Counter(label: "carillon_sockets_refused")

    init(limit: Int) { self.limit = limit }

    /// Whether one more may come in.
    func admits() -> Bool {
        if count.load(ordering: .relaxed) < limit { return true }
        refused.increment()
        return false
    }

    func opened() { gauge.record(count.wrappingAdd(1, ordering: .relaxed).newValue) }

    func closed() { gauge.record(count.wrappingSubtract(1, ordering: .relaxed).newValue) }

    /// When one of all these is to be closed, so that about two thousand are closed in a second, and all within a time.
    func closingDelay(withinSeconds seconds: Int) -> TimeAmount {
        let window = min(Int64(count.load(ordering: .relaxed)) * 500, Int64(seconds) * 1_000_000)
        return .microseconds(Int64.random(in: 0...max(0, window)))
    }
}
