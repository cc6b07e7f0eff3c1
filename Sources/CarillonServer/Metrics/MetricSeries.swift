import CoreMetrics
import Synchronization

/// One series: a name with certain labels.
protocol MetricSeries: AnyObject, Sendable {
    func write(into text: inout PrometheusText, name: String, labels: Labels)
}

final class CounterSeries: MetricSeries, CounterHandler {
    private let count = Atomic<Int64>(0)

    func increment(by amount: Int64) { count.wrappingAdd(amount, ordering: .relaxed) }
    func reset() {}

    func write(into text: inout PrometheusText, name: String, labels: Labels) {
        text.add(name, labels.text, Double(count.load(ordering: .relaxed)))
    }
}

final class GaugeSeries: MetricSeries, RecorderHandler {
    private let bits = Atomic<UInt64>(0)

    func record(_ value: Int64) { record(Double(value)) }
    func record(_ value: Double) { bits.store(value.bitPattern, ordering: .relaxed) }

    func write(into text: inout PrometheusText, name: String, labels: Labels) {
        text.add(name, labels.text, Double(bitPattern: bits.load(ordering: .relaxed)))
    }
}

/// The number of observations in each bucket, and their sum.
final class HistogramSeries: MetricSeries, RecorderHandler, TimerHandler {
    private struct State {
        var counts: [UInt64]
        var sum = 0.0
    }

    private let bounds: [Double]
    private let state: Mutex<State>

    /// - Parameter bounds: The upper bound of each bucket, ascending. A further bucket counts larger values.
    init(bounds: [Double]) {
        self.bounds = bounds
        state = Mutex(State(counts: Array(repeating: 0, count: bounds.count + 1)))
    }

    func record(_ value: Int64) { record(Double(value)) }

    func record(_ value: Double) {
        let bucket = bounds.firstIndex { value <= $0 } ?? bounds.count
        state.withLock { state in
            state.counts[bucket] += 1
            state.sum += value
        }
    }

    func recordNanoseconds(_ duration: Int64) { record(Double(duration) / 1e9) }

    func write(into text: inout PrometheusText, name: String, labels: Labels) {
        let (counts, sum) = state.withLock { ($0.counts, $0.sum) }
        var total: UInt64 = 0
        for (index, count) in counts.enumerated() {
            total += count
            let end = index < bounds.count ? PrometheusText.number(bounds[index]) : "+Inf"
            text.add("\(name)_bucket", labels.adding("le", end), Double(total))
        }
        text.add("\(name)_sum", labels.text, sum)
        text.add("\(name)_count", labels.text, Double(total))
    }
}
