#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The result of a wake, in the form in which a system with background execution expects it.
public enum PushWakeResult: Hashable, Sendable {
    /// Messages, requests or results of services, firings or events of the device arrived, or a transfer of
    /// ``PushClient/attachments`` was finished.
    case newData
    /// Nothing was waiting.
    case noData
    /// The server could not be reached, or not all waiting data arrived in time.
    case failed
}

extension PushClient {
    /// Fetches waiting data after a background push woke the app. It connects, and returns when all waiting data has arrived and
    /// the requests of services among it are answered.
    ///
    /// The data that arrived is durable and acknowledged when this returns. The call also lasts until pending replies and files
    /// of services are finished, until the messages of channels with a reader are handled, and until the transfers of
    /// ``attachments`` have ended that the app began or resumed, also in a handler of a message. After `limit` it returns in any
    /// case: handlers of requests are cancelled, and the next run continues unfinished work, a transfer from its offset. A
    /// transfer of ``attachments`` continues by itself as long as the process runs. After the end of the process the app resumes
    /// it (``AttachmentTransfer/resume()``). The next run begins when a handler that ignores its cancellation has ended. A client
    /// that did not run runs for the length of the call, or longer if it is started meanwhile. A running client checks that its
    /// connection is alive. Call this from `application(_:didReceiveRemoteNotification:fetchCompletionHandler:)`, with a limit
    /// below the 30 seconds that Apple allows an app.
    ///
    /// No library can guarantee more: iOS does not wake an app that the user ended by force, wakes other apps at its own
    /// discretion, up to a few times an hour, and keeps one undelivered background push for each app.
    ///
    /// The call also polls for updates, as ``PushUpdates/performBackgroundPoll(deadline:)`` does.
    public func handleWake(within limit: Duration = .seconds(20)) async -> PushWakeResult {
        async let updates = updates.hasOwner ? updates.performBackgroundPoll(deadline: .now + limit.seconds) : .noData
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
        // Stored work of an earlier run is done as well.
        runner.wakeServices()
        if started != .began {
            // The client runs already: the waiting data may have arrived, or the connection may be dead.
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

    /// Waits until no work is left, or the task is cancelled. A handler of a message can begin a transfer, and a transfer can end
    /// with a request.
    static func workEnds(_ activities: [WakeActivity], of runner: SessionRunner) async {
        while runner.isHandlingMessages || !activities.allSatisfy(\.isIdle) {
            for activity in activities { await activity.idle() }
            do { try await Task.sleep(for: .milliseconds(20)) } catch { return }
        }
    }

    /// Whether the work ends by a moment. At that moment the work is cancelled, and it must end then.
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
