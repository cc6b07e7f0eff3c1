import CarillonCore
import CoreMetrics
import Foundation
import Testing

@testable import CarillonServer

struct MetricsRegistryTests {
    private let registry = MetricsRegistry()

    @Test func `a counter adds the counts of all callers`() {
        for _ in 0..<3 {
            registry.makeCounter(label: "carillon_refusals_total", dimensions: [("code", "full")]).increment(by: 2)
        }
        registry.makeCounter(label: "carillon_refusals_total", dimensions: [("code", "gone")]).increment(by: 1)
        #expect(
            registry.text() == """
                # HELP carillon_refusals_total Requests refused, by the code of the error catalogue.
                # TYPE carillon_refusals_total counter
                carillon_refusals_total{code="full"} 6
                carillon_refusals_total{code="gone"} 1

                """)
    }

    @Test func `a gauge has its last value, and a destroyed counter keeps its count`() {
        let gauge = registry.makeRecorder(label: "carillon_sockets", dimensions: [], aggregate: false)
        gauge.record(Int64(7))
        gauge.record(2.5)
        let counter = registry.makeCounter(label: "carillon_writes_spared_total", dimensions: [])
        counter.increment(by: 4)
        counter.reset()
        registry.destroyCounter(counter)
        #expect(lines(of: "carillon_sockets") == ["carillon_sockets 2.5"])
        #expect(lines(of: "carillon_writes_spared_total") == ["carillon_writes_spared_total 4"])
    }

    @Test func `a bucket counts the values up to its limit`() {
        let sizes = registry.makeRecorder(label: "carillon_commit_changes", dimensions: [], aggregate: true)
        for size in [1, 2, 3, 2048, 2049] as [Int64] { sizes.record(size) }
        let lines = lines(of: "carillon_commit_changes")
        #expect(
            lines.prefix(3) == [
                "carillon_commit_changes_bucket{le=\"1\"} 1", "carillon_commit_changes_bucket{le=\"2\"} 2",
                "carillon_commit_changes_bucket{le=\"4\"} 3",
            ])
        #expect(
            lines.suffix(4) == [
                "carillon_commit_changes_bucket{le=\"2048\"} 4", "carillon_commit_changes_bucket{le=\"+Inf\"} 5",
                "carillon_commit_changes_sum 4103", "carillon_commit_changes_count 5",
            ])
    }

    @Test func `times are in seconds`() {
        registry.makeTimer(label: "carillon_commit_duration_seconds", dimensions: []).recordNanoseconds(250_000_000)
        #expect(lines(of: "carillon_commit_duration_seconds").contains("carillon_commit_duration_seconds_sum 0.25"))
    }

    @Test func `a library's own names become legal names, endings and escapes`() {
        registry.makeCounter(label: "lib.requests-made", dimensions: [("bad name", "a \"b\" \\ c\nd")]).increment(by: 1)
        registry.makeTimer(label: "lib.time", dimensions: []).recordNanoseconds(1)
        registry.makeRecorder(label: "9lives", dimensions: [], aggregate: false).record(1.0)
        let text = registry.text()
        #expect(text.contains(#"lib_requests_made_total{bad_name="a \"b\" \\ c\nd"} 1"#))
        #expect(text.contains("# TYPE lib_time_seconds histogram\n"))
        #expect(text.contains("\n_9lives 1\n"))
    }

    @Test func `the number of series is limited, and two kinds never have the same name`() {
        let registry = MetricsRegistry(seriesLimit: 2)
        for code in ["a", "b", "c"] {
            registry.makeCounter(label: "carillon_refusals_total", dimensions: [("code", code)]).increment(by: 1)
        }
        #expect(registry.text().split(separator: "\n").filter { !$0.hasPrefix("#") }.count == 2)
        let other = MetricsRegistry()
        other.makeCounter(label: "one_total", dimensions: []).increment(by: 1)
        other.makeRecorder(label: "one_total", dimensions: [("x", "y")], aggregate: false).record(5.0)
        #expect(other.text().split(separator: "\n").last == "one_total 1")
    }

    @Test func `values that are computed at a read are listed with the others`() {
        registry.makeCounter(label: "carillon_writes_spared_total", dimensions: []).increment(by: 1)
        let text = registry.text(with: ProcessStatistics.samples() + [.init(.buildInfo, "1.2.3", value: 1)])
        #expect(text.contains("carillon_build_info{version=\"1.2.3\"} 1\n"))
        #expect(text.contains("# TYPE process_cpu_seconds_total counter\n"))
        let names = text.split(separator: "\n").filter { $0.hasPrefix("# TYPE") }.map { $0.split(separator: " ")[2] }
        #expect(names == names.sorted())
        #if os(Linux)
            for name in ["process_resident_memory_bytes", "process_open_fds", "process_start_time_seconds"] {
                #expect(names.contains { $0 == name }, "\(name)")
            }
        #endif
    }

    @Test func `every name is on the page, with its labels, and each is fit for Prometheus`() throws {
        let page = try Self.page()
        for metric in ServerMetric.allCases {
            #expect(page.contains("| `\(metric.rawValue)` |"), "\(metric.rawValue)")
            for label in metric.labels { #expect(page.contains("`\(label)`"), "\(label)") }
            #expect((metric.kind == .counter) == metric.rawValue.hasSuffix("_total"))
            #expect(metric.rawValue == MetricDescription.legal(metric.rawValue))
        }
    }

    @Test(
        arguments: [
            (.shardMoves, ["moved", "busy", "failed"]),
            (.homeRequests, ["answered", "moved", "unreachable", "outcome_unknown"]),
        ] as [(ServerMetric, [String])])
    func `the page names each result of moves and of requests to homes`(metric: ServerMetric, results: [String]) throws {
        let start = "| `\(metric.rawValue)` | counter | `result` |"
        let rows = try Self.page().split(separator: "\n").filter { $0.hasPrefix(start) }
        let row = try #require(rows.first)
        for result in results {
            #expect(row.contains("`\(result)`"), "\(result)")
            metric.counter(result).increment()
        }
    }

    private static func page() throws -> String {
        try String(
            contentsOf: URL(fileURLWithPath: #filePath).deletingLastPathComponent()
                .appendingPathComponent("../../../docs/metrics.md"), encoding: .utf8)
    }

    private func lines(of name: String) -> [String] {
        registry.text().split(separator: "\n").map(String.init).filter { $0.hasPrefix(name) }
    }
}
