#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// What a wake came to, as a system that lets the app run in the background wants to know it.
public enum PushWakeResult: Hashable, Sendable {
    /// Messages, requests or results of services, firings or events of the device came, or a transfer of ``PushClient/attachments`` was finished.
    case newData
    /// Nothing had waited.
    case noData
    /// The server was not reached, or not all that waits had come in time.
    case failed
}

extension PushClient {
    /// Fetches what waits, when a background push woke the app: connects, and returns when all that waited has come and the requests of
    /// services that came are answered.
    ///
    /// What came is durable, and acknowledged, when this returns. The call also lasts until replies and files of services that were
    /// under way are finished, until the messages of channels that are being read are handled, and until the transfers of ``attachments`` have
    /// ended that go on: those that the app began or resumed, also in a handler of a message. Beyond `limit` it returns all the same: handlers of
    /// requests are cancelled, and the next run goes on with what is not finished, a transfer from its offset. A transfer of ``attachments`` goes on
    /// by itself as long as the process runs; after the end of the process the app resumes it (``AttachmentTransfer/resume()``). The next run begins when a handler that ignores its cancellation has ended. A client that
    /// did not run runs for the length of the call, or on when it is started meanwhile; one that does makes sure that its connection is
    /// alive. Call it from `application(_:didReceiveRemoteNotification:fetchCompletionHandler:)`, and leave it some of the 30 seconds that
    /// Apple gives an app.
    ///
    /// What no library can promise: iOS does not wake an app that the user ended by force, wakes others as it sees fit, a few
    /// times an hour at the most, and keeps one background push of an app that could not be delivered.
    ///
    /// Updates are polled for as well, as ``PushUpdates/performBackgroundPoll(deadline:)`` does.
    public func handleWake(within limit: Duration = .seconds(20)) async -> PushWakeResult {
        async let updates = updates.isWanted ? updates.performBackgroundPoll(deadline: .now + limit.seconds) : .noData
        let messages = await fetch(within: limit)
        let results = [messages, await updates]
        return results.contains(.newData) ? .newData : results.contains(.failed) ? .failed : .noData
    }

    private func fetch(within limit: Duration) async -> PushWakeResult {
        let end = ContinuousClock.now + limit
        let activity = runner.serviceActivity
        let transfers = attachments.activity
        let before = runner.catchUps.items + Int(activity.endedEvents) + Int(transfers.endedEvents)
        let caughtUp = runner.catchUps.nextEnd()
        let started = startForWake()
        // What an earlier run left is worked on as well.
        runner.lookForServiceEvents()
        if started != .began {
            // It runs: what waits may have come, or come over a connection that is dead.
            do {
                try await runner.perform { session, context in session.wakeReceived(at: context.now) }
            } catch {
                if started == .joined { await stopForWake(by: end) }
                return .failed
            }
        }
        let isInTime = await Self.isDone(by: end) { for await _ in caughtUp {} }
        if isInTime {
            _ = await Self.isDone(by: end) { [runner] in await Self.workEnds([activity, transfers], of: runner) }
        }
        if started != .runs { await stopForWake(by: end) }
        guard isInTime else { return .failed }
        let after = runner.catchUps.items + Int(activity.endedEvents) + Int(transfers.endedEvents)
        return after > before ? .newData : .noData
    }

    /// Waits until there is nothing to do, or the task is cancelled. A handler of a message can begin a transfer, and a transfer can end with a
    /// request.
    static func workEnds(_ activities: [WakeActivity], of runner: SessionRunner) async {
        while runner.isHandlingMessages || !activities.allSatisfy(\.isIdle) {
            for activity in activities { await activity.idle() }
            do { try await Task.sleep(for: .milliseconds(20)) } catch { return }
        }
    }

    /// Whether work ends by a moment. The work is cancelled then, and must heed it.
    static func isDone(
        by end: ContinuousClock.Instant, _ work: @escaping @Sendable () async -> Void
    ) async -> Bool {
        await withTaskGroup(of: Bool.self) { group in
            group.addTask {
                await work()
                return !Task.isCancelled
            }
            group.addTask {
                try? await Task.sleep(until: end, clock: .continuous)
                return false
            }
            defer { group.cancelAll() }
            return await group.next() ?? false
        }
    }
}

extension Duration {
    fileprivate var seconds: Double {
        Double(components.seconds) + Double(components.attoseconds) / 1e18
    }
}
