#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// What a wake came to, as a system that lets the app run in the background wants to know it.
public enum PushWakeResult: Hashable, Sendable {
    /// Messages came, and are in the storage; the channels' readers have them, or will.
    case newData
    /// Nothing had waited.
    case noData
    /// The server was not reached, or not all that waits had come in time.
    case failed
}

extension PushClient {
    /// Fetches what waits, when a background push woke the app: connects, and returns when all that waited has come.
    ///
    /// What came is durable, and acknowledged, when this returns. A client that did not run runs for the length of the call, or on
    /// when it is started meanwhile; one that does makes sure that its connection is alive. Call it from
    /// `application(_:didReceiveRemoteNotification:fetchCompletionHandler:)`, and leave it some of the 30 seconds that Apple gives
    /// an app.
    ///
    /// What no library can promise: iOS does not wake an app that the user ended by force, wakes others as it sees fit, a few
    /// times an hour at the most, and keeps one background push of an app that could not be delivered.
    ///
    /// Updates are polled for as well, as ``PushUpdates/performBackgroundPoll(deadline:)`` does.
    public func handleWake(within limit: Duration = .seconds(20)) async -> PushWakeResult {
        async let updates = updates.isWanted ? updates.performBackgroundPoll(deadline: .now + limit.seconds) : .noData
        let messages = await fetchMessages(within: limit)
        let results = [messages, await updates]
        return results.contains(.newData) ? .newData : results.contains(.failed) ? .failed : .noData
    }

    private func fetchMessages(within limit: Duration) async -> PushWakeResult {
        let before = runner.catchUps.messages
        let end = runner.catchUps.nextEnd()
        let started = startForWake()
        if started != .began {
            // It runs: what waits may have come, or come over a connection that is dead.
            do {
                try await runner.perform { session, context in session.wakeReceived(at: context.now) }
            } catch {
                if started == .joined { await stopForWake() }
                return .failed
            }
        }
        let isInTime = await withTaskGroup(of: Bool.self) { group in
            group.addTask {
                for await _ in end {}
                return !Task.isCancelled
            }
            group.addTask {
                try? await Task.sleep(for: limit)
                return false
            }
            defer { group.cancelAll() }
            return await group.next() ?? false
        }
        if started != .runs { await stopForWake() }
        guard isInTime else { return .failed }
        return runner.catchUps.messages > before ? .newData : .noData
    }
}

extension Duration {
    fileprivate var seconds: Double {
        Double(components.seconds) + Double(components.attoseconds) / 1e18
    }
}
