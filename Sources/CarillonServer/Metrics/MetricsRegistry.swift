import CarillonCore
package import CoreMetrics
import Synchronization

/// Contains every metric series of the process, and writes them in the Prometheus format.
///
/// The number of series is limited. Series beyond the limit are ignored.
package final class MetricsRegistry: MetricsFactory {
    private struct State {
        var families: [String: Family] = [:]
        var seriesCount = 0
    }

    private struct Family {
        var description: MetricDescription
        var series: [Labels: any MetricSeries] = [:]
    }

    private let state = Mutex(State())
    private let seriesLimit: Int

    package init(seriesLimit: Int = 4096) { self.seriesLimit = seriesLimit }

    /// Installs a registry for all metrics of this process. Must be called once, before a server is created.
    package static func install() -> MetricsRegistry {
        let registry = MetricsRegistry()
        MetricsSystem.bootstrap(registry)
        return registry
    }

    // MARK: Making

    package func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        series(MetricDescription(counter: label), dimensions) { CounterSeries() }
    }

    package func makeRecorder(
        label: String, dimensions: [(String, String)], aggregate: Bool
    ) -> any RecorderHandler {
        guard aggregate else { return series(MetricDescription(gauge: label), dimensions) { GaugeSeries() } }
        let description = MetricDescription(histogram: label)
        return series(description, dimensions) { HistogramSeries(bounds: description.bounds) }
    }

    package func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        let description = MetricDescription(timer: label)
        return series(description, dimensions) { HistogramSeries(bounds: description.bounds) }
    }

    private func series<Series: MetricSeries>(
        _ description: MetricDescription, _ dimensions: [(String, String)], _ make: () -> Series
    ) -> Series {
        let labels = Labels(dimensions)
        return state.withLock { state in
            var family = state.families[description.name] ?? Family(description: description)
            if let known = family.series[labels] as? Series { return known }
            let new = make()
            // Two kinds of metrics with the same name cannot be written.
            guard state.seriesCount < seriesLimit, family.description.type == description.type, family.series[labels] == nil
            else { return new }
            family.series[labels] = new
            state.families[description.name] = family
            state.seriesCount += 1
            return new
        }
    }

    // Counted values are kept, because a counter that restarts at zero would be seen as a restart of the process.
    package func destroyCounter(_ handler: any CounterHandler) {}
    package func destroyRecorder(_ handler: any RecorderHandler) {}
    package func destroyTimer(_ handler: any TimerHandler) {}

    // MARK: Reading

    /// A value that is read when metrics are requested.
    struct Sample {
        var metric: ServerMetric
        var labelValues: [String]
        var value: Double

        init(_ metric: ServerMetric, _ labelValues: String..., value: Double) {
            self.metric = metric
            self.labelValues = labelValues
            self.value = value
        }
    }

    func text(with samples: [Sample] = []) -> String {
        var families = state.withLock { $0.families }
        for sample in samples {
            let description = MetricDescription(sample.metric)
            let series = GaugeSeries()
            series.record(sample.value)
            families[description.name, default: Family(description: description)]
                .series[Labels(Array(zip(sample.metric.labels, sample.labelValues)))] = series
        }
        var text = PrometheusText()
        for family in families.values.sorted(by: { $0.description.name < $1.description.name }) {
            text.begin(family.description)
            for (labels, series) in family.series.sorted(by: { $0.key.text < $1.key.text }) {
                series.write(into: &text, name: family.description.name, labels: labels)
            }
        }
        return text.text
    }
}

/// The labels of a series in their written form.
struct Labels: Hashable {
    let text: String

    init(_ dimensions: [(String, String)]) {
        text = dimensions.sorted { $0.0 < $1.0 }
            .map { "\(MetricDescription.legal($0.0))=\"\(PrometheusText.escaped($0.1))\"" }
            .joined(separator: ",")
    }

    func adding(_ name: String, _ value: String) -> String {
        text.isEmpty ? "\(name)=\"\(value)\"" : "\(text),\(name)=\"\(value)\""
    }
}
