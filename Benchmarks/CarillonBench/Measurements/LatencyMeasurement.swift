import NIOCore

/// Measures the latency of single messages to one live subscriber: from just before the request is written until the frame is
/// read, and until the sender has its response.
struct LatencyMeasurement: Sendable {
    let scale: Scale
    /// The delay of the subscriber's acknowledgements.
    var acknowledgesAfter = TimeAmount.zero

    struct Result: Sendable {
        var frameMedian: Double
        var frame99: Double
        var answerMedian: Double
        var answer99: Double
        /// The share of responses with the outcome `acknowledged`.
        var acknowledgedShare: Double
        var cpuMicroseconds: Double
        var waits: Double
    }

    func measure(_ server: some PushServer) async throws -> Result {
        let delay = acknowledgesAfter
        let herd = SubscriberHerd(server.address) { index in
            var subscription = server.subscription(index)
            subscription.acknowledgesAfter = delay
            return subscription
        }
        try await LoadLoop.run { herd.connect(1, inFlight: 1) }
        try await Task.sleep(for: .milliseconds(300))
        try await measure(server, herd, count: scale.latencyMessages / 20 + 10)
        let before = try server.usage()
        let rally = try await measure(server, herd, count: scale.latencyMessages)
        let after = try server.usage()
        try await LoadLoop.run { herd.close() }
        let count = Double(scale.latencyMessages)
        return Result(
            frameMedian: rally.percentile(50, \.frameTimes), frame99: rally.percentile(99, \.frameTimes),
            answerMedian: rally.percentile(50, \.answerTimes), answer99: rally.percentile(99, \.answerTimes),
            acknowledgedShare: Double(rally.acknowledgedCount) / count,
            cpuMicroseconds: (after.cpuMicroseconds - before.cpuMicroseconds) / count,
            waits: (after.waits - before.waits) / count)
    }

    @discardableResult
    private func measure(_ server: some PushServer, _ herd: SubscriberHerd, count: Int) async throws -> Rally {
        try await LoadLoop.run {
            HTTPConnection.open(server.address).flatMap { connection in
                Rally(count: count, connection: connection, server: server).run(herd)
                    .always { _ in connection.close() }
            }
        }
    }
}
