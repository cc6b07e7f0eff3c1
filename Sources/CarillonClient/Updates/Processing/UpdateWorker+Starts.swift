import Logging

/// Code of the app that ends the process.
extension UpdateWorker {
    /// Stores a start of the app's code for an update, before the code runs; `end` follows when it ended. Returns false, and the code must not run, if
    /// the task is cancelled. While the storage cannot be written, nothing is started.
    func begin(_ update: WaitingUpdate) async -> Bool {
        while !Task.isCancelled {
            running[update.key, default: 0] += 1
            do {
                if update.starts > 0 { try await suspects.wait(for: update.number) }
                try await inbox.started(update)
                if !Task.isCancelled { return true }
                await end(update)
            } catch {
                await end(update)
                guard let error = error as? PushError else { return false }
                await failed(UpdateFailure(.storage, error.message))
                // Cancelled: the loop ends.
                try? await inbox.store.health.wait(atMost: Self.storagePause)
            }
        }
        return false
    }

    private static var storagePause: Duration { .seconds(1) }

    /// Takes the start back for code that was cancelled and did not end yet.
    nonisolated func takeBack(_ update: WaitingUpdate) { inbox.scheduleEnd(of: update, logger: logger) }

    /// The start is taken back with the last part of the app's code that runs for the update.
    func end(_ update: WaitingUpdate) async {
        let left = (running[update.key] ?? 1) - 1
        running[update.key] = left > 0 ? left : nil
        guard left <= 0 else { return }
        suspects.end(update.number)
        await storing { try await self.inbox.ended(update) }
    }

    /// Reports an update that ended the process too often.
    func giveUp(_ update: WaitingUpdate) async throws(PushError) {
        guard try await finish(update, .failed(isPermanent: true, reason: "crashed")) else { return }
        logger.error(
            "the app ended while it processed an update; it is not started again",
            metadata: ["update": "\(update.key.update)", "starts": "\(update.starts)"])
        await app.presenter.crashed(update.update)
    }
}
