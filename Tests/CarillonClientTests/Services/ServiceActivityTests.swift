import CarillonWire
import Synchronization
import TestSupport
import Testing

@testable import CarillonClient

/// What a wake waits for.
@Suite(.timeLimit(.minutes(1)))
struct ServiceActivityTests {
    private let activity = ServiceActivity()

    /// Whether the activity is idle at this moment.
    private func isIdle() async -> Bool {
        let task = Task { [activity] in
            await activity.idle()
            return !Task.isCancelled
        }
        try? await Task.sleep(for: .milliseconds(30))
        task.cancel()
        return await task.value
    }

    @Test func `what came is work until a reading that began later found nothing more`() async {
        #expect(await isIdle())
        activity.arrived()
        let first = activity.arrivals
        activity.arrived()
        activity.read(upTo: first)
        #expect(await !isIdle(), "something came while it was read")
        activity.read(upTo: activity.arrivals)
        #expect(await isIdle())
    }

    @Test func `work that began is awaited, and events are counted`() async throws {
        activity.began()
        activity.began()
        activity.ended(isEvent: true)
        #expect(await !isIdle())
        let isDone = Mutex(false)
        let waiting = Task { [activity] in
            await activity.idle()
            isDone.withLock { $0 = true }
        }
        try await Task.sleep(for: .milliseconds(30))
        #expect(!isDone.withLock { $0 })
        activity.ended()
        await waiting.value
        #expect(isDone.withLock { $0 } && activity.endedEvents == 1)
    }

    @Test func `an event that is handled at once is no work afterwards`() async throws {
        let fixture = try await EngineFixture()
        let (present, box) = await (fixture.engine.activity, fixture.engine.box)
        try await fixture.bring(.received(try #require(ServiceRequestID(String(repeating: "a", count: 32)))))
        let run = Task { await fixture.engine.run() }
        try await eventually { try await box.eventNumbers().isEmpty }
        let isIdle = await PushClient.isDone(by: ContinuousClock.now + .seconds(10)) { await present.idle() }
        #expect(isIdle && present.endedEvents == 1)
        run.cancel()
        await run.value
    }

    @Test func `an event of the device counts as something that came`() async throws {
        let server = try await ScriptedServer.start()
        let (client, _, socket, _) = try await PushClientTests().makeOpen(server)
        let before = client.runner.catchUps.items
        socket.send(.deviceStatus(DeviceStatusFrame(version: "v", status: "registered", at: 1)))
        try await eventually { client.runner.catchUps.items == before + 1 }
        await client.stop()
    }
}
