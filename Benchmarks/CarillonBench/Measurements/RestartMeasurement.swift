import Foundation
import NIOCore

/// Measures how long Carillon takes to start when many messages are waiting.
struct RestartMeasurement: Sendable {
    let scale: Scale
    let setup: CarillonSetup

    static let data = "restart"

    struct Result: Sendable {
        /// Seconds from the start of the process until the response to `/health/ready` is 200.
        var ready: Double
        /// Seconds until one message to one live device was delivered as well.
        var delivered: Double
    }

    /// Makes the data directory. Its last device has no waiting messages. Returns the running server.
    func fill() async throws -> CarillonUnderTest {
        let devices = try await setup.register(scale.restartDevices + 1, data: Self.data)
        let server = try await setup.start(data: Self.data, devices: devices)
        do {
            _ = try await AcceptMeasurement.send(
                scale.restartEnvelopes, of: ByteBuffer(repeating: UInt8(ascii: "b"), count: 100),
                to: scale.restartDevices, senders: 256, server)
            return server
        } catch {
            await server.process.stop()
            throw error
        }
    }

    /// Ends the server with a signal, and starts it again.
    func restart(_ server: CarillonUnderTest, after signal: Int32) async throws -> (CarillonUnderTest, Result) {
        await server.process.stop(signal)
        let start = nanoseconds()
        let next = try setup.launch(data: Self.data, devices: server.devices)
        do {
            try await setup.waitUntilReady(next)
            let ready = Double(nanoseconds() - start) / 1e9
            try await deliverOne(next)
            let delivered = Double(nanoseconds() - start) / 1e9
            let waiting = try await next.waitingCount()
            guard waiting == scale.restartEnvelopes else {
                throw NotMeasured("\(waiting) messages wait after the restart, not \(scale.restartEnvelopes)")
            }
            return (next, Result(ready: ready, delivered: delivered))
        } catch {
            await next.process.stop()
            throw error
        }
    }

    private func deliverOne(_ server: CarillonUnderTest) async throws {
        let last = server.devices.count - 1
        let herd = SubscriberHerd(server.address) { _ in server.subscription(last) }
        try await LoadLoop.run { herd.connect(1, inFlight: 1) }
        let request = server.message(ByteBuffer(string: "back"), to: last)
        async let answer = HTTPConnection.exchange(request, server.address)
        try await LoadLoop.run { herd.receive(1) }
        guard try await answer.status == 201 else { throw NotMeasured("a message after the restart was not accepted") }
        try await LoadLoop.run { herd.close() }
    }
}
