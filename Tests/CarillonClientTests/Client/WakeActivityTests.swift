import CarillonWire
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import CarillonClient

/// The conditions that a wake waits for.
@Suite(.timeLimit(.minutes(5)))
struct WakeActivityTests {
    private let activity = WakeActivity()
    private let base = PushClientTests()

    /// A transfer that continues until a gate opens.
    private func transfer(_ gate: PendingResult<Void>, _ activity: WakeActivity) -> AttachmentTransfer<String> {
        AttachmentTransfer(
            id: "t", length: 1, activity: activity,
            work: { _ in
                try await gate.value
                return "path"
            }, onCancel: {}, onConfirm: {})
    }

    @Test func `a transfer counts as work while it runs, and as data when it is finished`() async throws {
        let gate = PendingResult<Void>()
        let transfer = transfer(gate, activity)
        #expect(activity.isIdle)
        transfer.resume()
        #expect(!activity.isIdle)
        await transfer.pause()
        try await eventually { activity.isIdle }
        #expect(activity.endedEvents == 0)
        transfer.resume()
        #expect(!activity.isIdle)
        gate.resume(.success(()))
        #expect(try await transfer.value == "path")
        try await eventually { activity.isIdle }
        #expect(activity.endedEvents == 1)
    }

    @Test func `a transfer that failed is no work and no data`() async throws {
        let gate = PendingResult<Void>()
        let transfer = transfer(gate, activity)
        transfer.resume()
        #expect(!activity.isIdle)
        gate.resume(.failure(PushError(.attachmentGone, "The attachment is gone.")))
        await #expect(throws: PushError.self) { _ = try await transfer.value }
        try await eventually { activity.isIdle }
        #expect(activity.endedEvents == 0)
    }

    @Test func `an upload is work from its sealing on`() async throws {
        let client = try PushClient(
            configuration: .init(
                server: "http://127.0.0.1:1", app: "com.example.app", clientKey: "key",
                storageDirectory: base.directory.path))
        let path = base.directory.path + "/file"
        try Data(count: 10).write(to: URL(fileURLWithPath: path))
        let upload = try await client.attachments.upload(path, for: [.senders])
        #expect(!client.attachments.activity.isIdle)
        await upload.pause()
        try await eventually { client.attachments.activity.isIdle }
    }

    @Test func `a wake waits for transfers that go on, and a finished one is data`() async throws {
        let server = try await ScriptedServer.start()
        let client = try base.makeClient(server)
        let gate = PendingResult<Void>()
        let transfer = transfer(gate, client.attachments.activity)
        transfer.resume()
        let began = ContinuousClock.now
        let short = Task { await client.handleWake(within: .seconds(12)) }
        let (first, _) = try await server.welcome()
        first.send(.caughtUp)
        _ = await short.value
        #expect(began.duration(to: .now) >= .seconds(12))
        let caughtUp = client.runner.catchUps.nextEnd()
        // It ends when there is nothing to do: its limit is longer than that of the suite.
        let long = Task { await client.handleWake(within: .seconds(3600)) }
        let (second, _) = try await server.welcome()
        second.send(.caughtUp)
        for await _ in caughtUp {}
        gate.resume(.success(()))
        #expect(await long.value == .newData)
    }

    @Test func `a firing with which the process ended ten times is data of a wake`() async throws {
        let server = try await ScriptedServer.start()
        let client = try base.makeClient(server)
        let empty = Task { await client.handleWake(within: .seconds(50)) }
        let (first, _) = try await server.welcome()
        first.send(.caughtUp)
        #expect(await empty.value == .noData)
        try await client.runner.perform { _, _ in [.write(.saveFiringStarts(id: "v", HandlerStarts.most))] }
        let wake = Task { await client.handleWake(within: .seconds(50)) }
        let (second, _) = try await server.welcome()
        let body = #"{"subscription":"00000000000000000000000000000001","item":"i","at":5,"notification":{"title":"t"}}"#
        second.send(.fired(FiredFrame(version: "v", body: Array(body.utf8))))
        #expect(try await second.receive() == .nack(version: "v", code: 301))
        second.send(.caughtUp)
        #expect(await wake.value == .newData)
    }

    @Test func `a wake waits for messages that are read until they are handled`() async throws {
        let server = try await ScriptedServer.start()
        let (client, channel, socket, id) = try await base.makeOpen(server)
        socket.notify(id, "a")
        #expect(try await socket.receive() == .ack([.init(version: "a", code: 100)]))
        #expect(!client.runner.isHandlingMessages, "it has no reader")
        var events = channel.events.makeAsyncIterator()
        guard case .message(let message)? = try await events.next() else { throw ServerSocket.Ended() }
        #expect(client.runner.isHandlingMessages)
        let hasEnded = Mutex(false)
        let (begins, hasBegun) = AsyncStream.makeStream(of: Void.self)
        let waiting = Task {
            hasBegun.finish()
            await PushClient.workEnds([], of: client.runner)
            hasEnded.withLock { $0 = true }
        }
        for await _ in begins {}
        socket.notify(id, "b")
        #expect(try await socket.receive() == .ack([.init(version: "b", code: 100)]))
        #expect(!hasEnded.withLock { $0 }, "messages are not handled")
        try await message.acknowledge()
        guard case .message(let last)? = try await events.next() else { throw ServerSocket.Ended() }
        try await last.acknowledge()
        await waiting.value
        #expect(!client.runner.isHandlingMessages)
        await client.stop()
    }

    /// Whether the activity is idle at this moment, or within a time.
    private func isIdle(within duration: Duration = .seconds(30)) async -> Bool {
        await PushClient.isDone(by: ContinuousClock.now + duration) { [activity] in await activity.idle() }
    }

    @Test func `received entries count as work until a reading that began later finds nothing more`() async {
        #expect(await isIdle())
        activity.arrived()
        let first = activity.arrivals
        activity.arrived()
        activity.read(upTo: first)
        #expect(await !isIdle(within: .milliseconds(30)), "something came while it was read")
        activity.read(upTo: activity.arrivals)
        #expect(await isIdle())
    }

    @Test func `work that began is awaited, and events are counted`() async throws {
        activity.began()
        activity.began()
        activity.ended(isEvent: true)
        #expect(await !isIdle(within: .milliseconds(30)))
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
        let fixture = try await ServiceEngineFixture()
        let (present, box) = await (fixture.engine.activity, fixture.engine.box)
        try await fixture.receive(.received(try #require(ServiceRequestID(String(repeating: "a", count: 32)))))
        let run = Task { await fixture.engine.run() }
        try await eventually { try await box.eventNumbers().isEmpty }
        let isIdle = await PushClient.isDone(by: ContinuousClock.now + .seconds(50)) { await present.idle() }
        #expect(isIdle && present.endedEvents == 1)
        run.cancel()
        await run.value
    }

    @Test func `an event of the device counts as a received entry`() async throws {
        let server = try await ScriptedServer.start()
        let (client, _, socket, _) = try await base.makeOpen(server)
        let before = client.runner.catchUps.items
        socket.send(.deviceStatus(DeviceStatusFrame(version: "v", status: "registered", at: 1)))
        try await eventually { client.runner.catchUps.items == before + 1 }
        await client.stop()
    }
}
