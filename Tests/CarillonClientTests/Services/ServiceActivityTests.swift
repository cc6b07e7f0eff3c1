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
}
