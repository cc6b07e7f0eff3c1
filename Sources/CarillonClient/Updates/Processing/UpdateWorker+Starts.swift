import Logging

/// The handling of app code that ends the process.
extension UpdateWorker {
    /// The parts of the app's code that run for one update.
    struct RunningParts: Sendable {
        var count = 0
        /// The starts that ended with the process before these parts began.
        let starts: Int
    }

    /// Stores a start of the app's code for an update, before the code runs; `end` follows when the code has ended. Returns
    /// false, and the code must not run, if the task is cancelled, or if the update was withdrawn. While the storage cannot be
    /// written, no code is started.
    ///
    /// - Parameter work: The side work that the code belongs to. The code does not run if this work has ended, or was replaced.
    func begin(_ update: WaitingUpdate, _ work: SideWork? = nil) async -> Bool {
        while mayRun(update, work) {
            running[update.key, default: RunningParts(starts: update.starts)].count += 1
            do {
                if update.starts > 0 { try await suspects.wait(for: .update(update.number)) }
                var isStored = false
                if mayRun(update, work) { isStored = try await inbox.started(update) }
                if isStored, mayRun(update, work) { return true }
                await end(update)
                if !isStored { return false }
            } catch {
                await end(update)
                guard let error = error as? PushError else { return false }
                await failed(UpdateFailure(.storage, error.message))
                // If the task is cancelled, the loop ends.
                try? await inbox.store.health.wait(atMost: Self.storagePause)
            }
        }
        return false
    }

    /// Returns an update without the start of the app's code that is running for it, because the server can send an update again
    /// meanwhile.
    func withoutPresentStart(_ update: WaitingUpdate) -> WaitingUpdate {
        guard let parts = running[update.key], update.starts == parts.starts + 1 else { return update }
        var update = update
        update.starts = parts.starts
        return update
    }

    private func mayRun(_ update: WaitingUpdate, _ work: SideWork?) -> Bool {
        !Task.isCancelled && (work == nil || sideWork[update.key] === work)
    }

    private static var storagePause: Duration { .seconds(1) }

    /// Removes the start for code that was cancelled and has not ended yet.
    nonisolated func removeStart(of update: WaitingUpdate) { inbox.scheduleEnd(of: update, logger: logger) }

    /// Removes the start when the last part of the app's code for the update has ended.
    func end(_ update: WaitingUpdate) async {
        running[update.key]?.count -= 1
        if let left = running[update.key]?.count, left > 0 { return }
        running[update.key] = nil
        suspects.end(.update(update.number))
        await storing { try await self.inbox.ended(update) }
    }

    /// Reports an update for which the process ended too often.
    func failPermanently(_ update: WaitingUpdate) async throws(PushError) {
        guard try await finish(update, .failed(isPermanent: true, reason: "crashed")) else { return }
        logger.error(
            "the app ended while it processed an update; it is not started again",
            metadata: ["update": "\(update.key.update)", "starts": "\(update.starts)"])
        await app.presenter.crashed(update.update)
    }
}
