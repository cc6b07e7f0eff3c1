import Metrics

/// The metrics of a pool (swift-metrics), by environment.
struct PoolMetrics: Sendable {
    private let environment: String
    private let factory: any MetricsFactory
    private let accepted: Counter
    private let latency: Metrics.Timer
    private let returns: Counter
    private let retries: Counter
    private let opened: Counter
    private let failures: Counter
    private let queuedGauge: Gauge
    private let inFlightGauge: Gauge
    private let connectionsGauge: Gauge
    private let trace: (@Sendable (APNsClient.Trace) -> Void)?

    init(environment: String, factory: any MetricsFactory, trace: (@Sendable (APNsClient.Trace) -> Void)?) {
        self.environment = environment
        self.factory = factory
        self.trace = trace
        let labels = [("environment", environment)]
        accepted = Counter(
            label: "carillon_apns_sent_total", dimensions: labels + [("outcome", "accepted")], factory: factory)
        latency = Metrics.Timer(label: "carillon_apns_latency", dimensions: labels, factory: factory)
        returns = Counter(label: "carillon_apns_returned_total", dimensions: labels, factory: factory)
        retries = Counter(label: "carillon_apns_retries_total", dimensions: labels, factory: factory)
        opened = Counter(label: "carillon_apns_connections_opened_total", dimensions: labels, factory: factory)
        failures = Counter(label: "carillon_apns_connect_failures_total", dimensions: labels, factory: factory)
        queuedGauge = Gauge(label: "carillon_apns_queued", dimensions: labels, factory: factory)
        inFlightGauge = Gauge(label: "carillon_apns_in_flight", dimensions: labels, factory: factory)
        connectionsGauge = Gauge(label: "carillon_apns_connections", dimensions: labels, factory: factory)
    }

    func finished(_ result: SubmissionResult, _ duration: Duration) {
        let outcome: String
        switch result {
        case .success(let answer) where answer.isAccepted:
            accepted.increment()
            outcome = "accepted"
        case .success(let answer):
            // Only known reasons become labels, so that a peer cannot create an unlimited number of labels.
            let known = answer.rejection?.reason.flatMap { APNsReason.known.contains($0) ? $0.rawValue : nil }
            outcome = known ?? "status\(answer.status / 100)xx"
            count(outcome)
        case .failure(let error):
            outcome = error.code.description
            count(outcome)
        }
        latency.recordNanoseconds(duration.wholeNanoseconds)
        trace?(APNsClient.Trace(environment: environment, duration: duration, outcome: outcome))
    }

    private func count(_ outcome: String) {
        Counter(
            label: "carillon_apns_sent_total", dimensions: [("environment", environment), ("outcome", outcome)],
            factory: factory
        ).increment()
    }

    func returned() { returns.increment() }
    func retried() { retries.increment() }
    func connectionOpened() { opened.increment() }
    func connectFailed() { failures.increment() }

    func connectionRetired(_ fault: ConnectionFault) {
        Counter(
            label: "carillon_apns_connections_retired_total",
            dimensions: [("environment", environment), ("why", "\(fault.kind)")],
            factory: factory
        ).increment()
    }

    func gauge(queued: Int, inFlight: Int, connections: Int) {
        queuedGauge.record(queued)
        inFlightGauge.record(inFlight)
        connectionsGauge.record(connections)
    }
}
