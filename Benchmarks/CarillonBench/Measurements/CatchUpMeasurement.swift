import NIOCore

/// Measures how many waiting messages per second are delivered to devices that connect at the same time.
struct CatchUpMeasurement: Sendable {
    let scale: Scale

    /// Sends messages that wait for the devices.
    func fill(_ server: some PushServer) async throws {
        _ = try await AcceptMeasurement.send(
            scale.catchUpDevices * scale.catchUpEach, of: ByteBuffer(repeating: UInt8(ascii: "b"), count: 256),
            to: scale.catchUpDevices, senders: scale.senders, server)
    }

    /// Returns the messages per second, until all messages were received.
    func measure(_ server: some PushServer) async throws -> Double {
        let scale = scale
        let count = scale.catchUpDevices * scale.catchUpEach
        let herd = SubscriberHerd(server.address) { server.subscription($0) }
        let start = nanoseconds()
        let counts = try await LoadLoop.run {
            let connected = herd.connect(scale.catchUpDevices, inFlight: scale.catchUpDevices)
            return connected.flatMap { herd.receive(count) }.map { herd.counts }
        }
        let seconds = Double(nanoseconds() - start) / 1e9
        try await Task.sleep(for: .milliseconds(500))
        try await LoadLoop.run { herd.close() }
        guard counts.allSatisfy({ $0 == scale.catchUpEach }) else {
            throw NotMeasured("some devices got more messages than waited for them, others less")
        }
        return Double(count) / seconds
    }
}
