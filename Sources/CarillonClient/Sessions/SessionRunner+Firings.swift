import Logging

/// The firings that the app receives. If the process ended ten times during a firing, the app does not receive the firing
/// again.
extension SessionRunner {
    /// Waits while firings are paused, and for the turn of a firing that an earlier process had started. Then stores that the app
    /// receives the firing. Returns false if the iteration ends before, or the delegates must not be called.
    ///
    /// If the storage cannot be written, the app receives the firing as well.
    func beginFiring(
        _ entry: FiringQueue.Entry, by recipient: EntryRecipient = .reader, isOver: @Sendable () -> Bool
    ) async -> Bool {
        while await firings.isResumed(isOver: isOver) {
            if entry.starts > 0 {
                guard await firingStarts.waitForTurn(entry, isOver: isOver) else { return false }
            }
            await storeStart(of: entry, by: recipient)
            guard firings.isPaused else { return true }
            // The app has named another user.
            releaseStart(of: entry, by: recipient)
        }
        return false
    }

    private func releaseStart(of entry: FiringQueue.Entry, by recipient: EntryRecipient) {
        if let started = firingStarts.released(entry.suspect, by: recipient) { removeStart(started) }
    }

    private func storeStart(of entry: FiringQueue.Entry, by recipient: EntryRecipient) async {
        guard firingStarts.began(entry, by: recipient) else { return }
        do throws(PushError) {
            try await perform(mustReachDisk: false) { [firingStarts] _, context throws(PushError) in
                // If the client has stopped, no start is stored. The server does not send an answered firing again.
                guard firingStarts.hasStarted(entry), try context.answer(to: entry.id) == nil else { return [] }
                return [.write(.saveFiringStarts(id: entry.id, entry.starts + 1))]
            }
        } catch {
            _ = firingStarts.released(entry.suspect, by: recipient)
            logger.warning(
                "cannot store that the app is given a firing",
                metadata: ["id": "\(entry.id)", "reason": "\(error.message)"])
        }
    }

    /// Returns what is done before and after the delegates of a subscription are called with a firing.
    func delegateStart(of entry: FiringQueue.Entry) -> DelegateStart {
        DelegateStart(
            begins: { [weak self, firings] in
                let ends = firings.ends
                let isOver: @Sendable () -> Bool = { !firings.isCurrent(entry) || firings.ends != ends }
                // The call does not retain the client while it waits.
                guard await firings.isResumed(isOver: isOver), firings.isCurrent(entry), let self,
                    await self.beginFiring(entry, by: .delegate, isOver: isOver)
                else {
                    // The delegates are called when the server sends the firing again.
                    firings.removeRecord(entry.id)
                    return false
                }
                // The owner may have changed while the start was stored.
                return firings.isCurrent(entry)
            },
            ended: { [weak self] in self?.releaseStart(of: entry, by: .delegate) })
    }

    /// The app has handled a firing. The step is repeated until it is stored, because the server sends no more than its window of
    /// unanswered firings.
    func firingHandled(_ entry: FiringQueue.Entry) {
        firingStarts.handled(entry)
        begin({ session, _ in session.firingHandled(entry.firing) }) { [weak self] result in
            guard let self else { return }
            if case .failure = result { return again { $0.firingHandled(entry) } }
            firings.removeRecord(entry.id)
        }
    }

    /// An iteration ended before the app had handled its last firing. The server sends the firing again on the next connection.
    func firingAbandoned(_ entry: FiringQueue.Entry) {
        guard let started = firingStarts.released(entry.suspect, by: .reader) else { return firings.released(entry) }
        // Another iteration receives the firing only after its former starts are stored.
        removeStart(started) { [firings] in firings.released(entry) }
    }

    /// Stores that a firing did not end the process. Forgets the starts of a firing that is answered or has a former owner.
    func removeStart(_ entry: FiringQueue.Entry, done: @escaping @Sendable () -> Void = {}) {
        begin(
            mustReachDisk: false,
            { [firings, firingStarts] _, context throws(PushError) in
                guard firings.isCurrent(entry), try context.answer(to: entry.id) == nil else {
                    return [.write(.saveFiringStarts(id: entry.id, 0))]
                }
                // Other code of the app may have started with the firing.
                let starts = firingStarts.hasStarted(entry) ? entry.starts + 1 : entry.starts
                return [.write(.saveFiringStarts(id: entry.id, starts))]
            }
        ) { [logger] result in
            done()
            guard case .failure(let error) = result else { return }
            logger.warning("cannot store that a firing was not handled", metadata: ["reason": "\(error.message)"])
        }
    }

    func noteCrashing(_ firing: SubscriptionFiring, starts: Int) {
        logger.error(
            "the app ended while it handled a firing; it is not given to the app again",
            metadata: ["subscription": "\(firing.subscriptionID)", "id": "\(firing.id)", "starts": "\(starts)"])
        catchUps.received()
        // The delegates are not called with the firing again, because they may have ended the process.
        subscriptions.fired(firing.subscriptionID, at: firing.milliseconds, isNotified: false)
        deviceListeners.notify([.firingCrashed(firing)])
    }
}
