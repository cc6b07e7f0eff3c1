import NIOCore

/// Measures how many messages per second are accepted for subscribers that are not connected.
struct AcceptMeasurement: Sendable {
    let scale: Scale

    struct Result: Sendable {
        var messagesPerSecond: Double
        var cpuMicroseconds: Double
        var waits: Double
        var loadShare: Double
    }

    /// - Parameter devices: The number of devices, which receive the messages in turn.
    func measure(_ server: some PushServer, devices: Int) async throws -> Result {
        let body = ByteBuffer(repeating: UInt8(ascii: "b"), count: 256)
        return try await Self.send(scale.offlineMessages, of: body, to: devices, senders: scale.senders, server)
    }

    static func send(
        _ count: Int, of body: ByteBuffer, to devices: Int, senders: Int, _ server: some PushServer
    ) async throws -> Result {
        let requests = server.messages(body, to: devices)
        let before = try server.usage()
        let ownCPU = try ProcessUsage.ownMicroseconds()
        let start = nanoseconds()
        try await LoadLoop.run {
            HTTPConnection.open(senders, server.address).flatMap { connections in
                RequestPump.run(count, over: connections) {
                    requests[$0 % requests.count]
                } check: { _, answer in
                    server.isAccepted(answer)
                }.always { _ in for connection in connections { connection.close() } }
            }
        }
        let seconds = Double(nanoseconds() - start) / 1e9
        let after = try server.usage()
        return Result(
            messagesPerSecond: Double(count) / seconds,
            cpuMicroseconds: (after.cpuMicroseconds - before.cpuMicroseconds) / Double(count),
            waits: (after.waits - before.waits) / Double(count),
            loadShare: (try ProcessUsage.ownMicroseconds() - ownCPU) / (seconds * 1e6))
    }
}
