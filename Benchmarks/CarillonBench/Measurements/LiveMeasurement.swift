import NIOCore

/// Measures messages to live subscribers that acknowledge: how many are sent, delivered and answered per second, and how much
/// CPU time of the server one message takes.
struct LiveMeasurement: Sendable {
    let scale: Scale

    struct Result: Sendable {
        var messagesPerSecond: Double
        var cpuMicroseconds: Double
        var waits: Double
        var acknowledgedShare: Double
        var loadShare: Double
    }

    func measure(_ server: some PushServer) async throws -> Result {
        let scale = scale
        let count = scale.liveMessages / scale.liveDevices * scale.liveDevices
        let requests = server.messages(ByteBuffer(repeating: UInt8(ascii: "b"), count: 256), to: scale.liveDevices)
        let herd = SubscriberHerd(server.address) { server.subscription($0) }
        try await LoadLoop.run { herd.connect(scale.liveDevices, inFlight: 64) }
        try await Task.sleep(for: .seconds(1))

        let tally = Tally()
        let before = try server.usage()
        let ownCPU = try ProcessUsage.ownMicroseconds()
        let start = nanoseconds()
        let counts = try await LoadLoop.run {
            HTTPConnection.open(scale.senders, server.address).flatMap { connections in
                let arrived = herd.receive(count)
                return RequestPump.run(count, over: connections) {
                    requests[$0 % requests.count]
                } check: { _, answer in
                    if answer.isAcknowledged { tally.acknowledged += 1 }
                    return server.isAccepted(answer)
                }.and(arrived).map { _ in herd.counts }
                    .always { _ in for connection in connections { connection.close() } }
            }
        }
        let seconds = Double(nanoseconds() - start) / 1e9
        let loadShare = (try ProcessUsage.ownMicroseconds() - ownCPU) / (seconds * 1e6)
        // The last outcomes are written a little later, and are part of the cost.
        try await Task.sleep(for: .milliseconds(200))
        let after = try server.usage()
        try await LoadLoop.run { herd.close() }
        guard counts.allSatisfy({ $0 == count / scale.liveDevices }) else {
            throw NotMeasured("some subscribers got more messages than were sent to them, others less")
        }
        return Result(
            messagesPerSecond: Double(count) / seconds,
            cpuMicroseconds: (after.cpuMicroseconds - before.cpuMicroseconds) / Double(count),
            waits: (after.waits - before.waits) / Double(count),
            acknowledgedShare: Double(tally.acknowledged) / Double(count), loadShare: loadShare)
    }

    /// `@unchecked Sendable`: it is used only on ``LoadLoop`` until the pump is done.
    private final class Tally: @unchecked Sendable {
        var acknowledged = 0
    }
}
