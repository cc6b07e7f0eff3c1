import CarillonAPNs
import CarillonAPNsSimulator
import Logging
import MetricsTestKit
import Synchronization
import TestSupport
import Testing

/// The information about a client that an operator receives, and the information that must not be visible.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct ObservationTests {
    /// Keeps every line that is logged, at any level.
    struct Recorder: LogHandler {
        final class Lines: Sendable {
            let text = Mutex("")
        }

        let lines: Lines
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            lines.text.withLock { $0 += "\(event.message) \(event.metadata ?? [:])\n" }
        }
    }

    @Test func `the results of pushes are counted by outcome`() async throws {
        let metrics = TestMetrics()
        let scene = try await Scene(
            simulator: {
                $0.faults = [.init(.reject(.unregistered), skip: 10, times: 3), .init(.reset(.refusedStream), times: 2)]
            },
            client: { $0.metrics = metrics })
        let outcomes = try await scene.outcomes(Samples.tokens(50))
        #expect(outcomes == ["accepted": 47, "Unregistered": 3])
        let environment = ("environment", "localhost")
        func total(_ label: String, _ dimensions: [(String, String)]) throws -> Int64 {
            try metrics.expectCounter(label, dimensions).totalValue
        }
        #expect(try total("carillon_apns_sent_total", [environment, ("outcome", "accepted")]) == 47)
        #expect(try total("carillon_apns_sent_total", [environment, ("outcome", "Unregistered")]) == 3)
        #expect(try total("carillon_apns_returned_total", [environment]) == 2)
        #expect(try total("carillon_apns_connections_opened_total", [environment]) >= 1)
        #expect(try total("carillon_apns_token_renewals_total", []) == 1)
        #expect(try metrics.expectTimer("carillon_apns_latency", [environment]).values.count == 50)
        try await eventually {
            metrics.recorders.contains { $0.label == "carillon_apns_connections" && $0.lastValue ?? 0 >= 1 }
        }
        await scene.end()
    }

    @Test func `no log line contains a token, a key or a payload`() async throws {
        let lines = Recorder.Lines()
        let scene = try await Scene(
            simulator: {
                $0.faults = [
                    .init(.goAway(reason: "Shutdown", last: .before), skip: 3, times: 1), .init(.close, skip: 20, times: 1),
                    .init(.reject(.badDeviceToken), times: 2),
                ]
            }, client: { $0.logger = Logger(label: "test") { _ in Recorder(lines: lines) } })
        let tokens = Samples.tokens(60)
        _ = try await scene.outcomes(tokens, .alert("The secret of the kettle"))
        await scene.end()
        let text = lines.text.withLock { $0 }
        #expect(text.contains("connection accepts no more pushes"))
        #expect(text.contains("provider token renewed"))
        #expect(!tokens.contains { text.contains($0) })
        #expect(!text.contains("kettle"))
        #expect(!text.contains("bearer") && !text.contains("eyJ") && !text.contains("PRIVATE"))
    }
}
