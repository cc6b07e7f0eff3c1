import Logging

/// The firings that the app receives. If the process ended ten times during a firing, the app does not receive the firing
/// again.
extension SessionRunner {
    /// Waits while firings are paused, and for the turn of a firing that was under way when the process ended. Then stores that the app is given
    /// the firing. Returns false if the iteration is over before, or the delegates must not be called.
    ///
    /// If the storage cannot be written, the app is given the firing as well.
    func beginFiring(
        _ entry: FiringQueue.Entry, by holder: StartHolder = .reader, isOver: @Sendable () -> Bool
    ) async -> Bool {
        while await firings.isResumed(isOver: isOver) {
            if entry.starts > 0 {
                guard await firingStarts.hasTurn(entry, isOver: isOver) else { return false }
            }
            await storeStart(of: entry, by: holder)
            guard firings.isPaused else { return true }
            // The app named another user meanwhile.
            takeBackStart(of: entry, by: holder)
        }
        return false
    }

    private func takeBackStart(of entry: FiringQueue.Entry, by holder: StartHolder) {
        if let started = firingStarts.released(entry.suspect, by: holder) { takeBack(started) }
    }

    private func storeStart(of entry: FiringQueue.Entry, by holder: StartHolder) async {
        guard firingStarts.began(entry, by: holder) else { return }
        do throws(PushError) {
            try await perform(mustReachDisk: false) { [firingStarts] _, context throws(PushError) in
                // The client may have stopped meanwhile. A firing that was answered does not come again.
                guard firingStarts.hasStarted(entry), try context.answer(to: entry.id) == nil else { return [] }
                return [.write(.saveFiringStarts(id: entry.id, entry.starts + 1))]
            }
        } catch {
            _ = firingStarts.released(entry.suspect, by: holder)
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
                // The client is not retained while the call waits.
                guard await firings.isResumed(isOver: isOver), firings.isCurrent(entry), let self,
                    await self.beginFiring(entry, by: .delegate, isOver: isOver)
                else {
                    // The delegates are called when the firing comes again.
                    firings.forget(entry.id)
                    return false
                }
                // The owner may have changed while the start was stored.
                return firings.isCurrent(entry)
            },
            ended: { [weak self] in self?.takeBackStart(of: entry, by: .delegate) })
    }

    /// The app is done with a firing. It is tried again until that is stored: the server sends no more than its window before.
    func firingHandled(_ entry: FiringQueue.Entry) {
        firingStarts.handled(entry)
        begin({ session, _ in session.firingHandled(entry.firing) }) { [weak self] result in
            guard let self else { return }
            if case .failure = result { return again { $0.firingHandled(entry) } }
            firings.forget(entry.id)
        }
    }

    /// The iteration that was given a firing ended before it asked for the next one: the firing comes again at the next connection.
    func firingBrokeOff(_ entry: FiringQueue.Entry) {
        guard let started = firingStarts.released(entry.suspect, by: .reader) else { return firings.released(entry) }
        // The firing is not taken before its former starts are stored.
        takeBack(started) { [firings] in firings.released(entry) }
    }

    /// Stores that a firing did not end the process. Nothing of a firing that was answered, or of a former owner, stays.
    func takeBack(_ entry: FiringQueue.Entry, done: @escaping @Sendable () -> Void = {}) {
        begin(
            mustReachDisk: false,
            { [firings, firingStarts] _, context throws(PushError) in
                guard firings.isCurrent(entry), try context.answer(to: entry.id) == nil else {
                    return [.write(.saveFiringStarts(id: entry.id, 0))]
                }
                // Other code of the app may have begun meanwhile.
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
        catchUps.took()
        // The delegates are not called with the firing again: they may have ended the process.
        subscriptions.fired(firing.subscriptionID, at: firing.milliseconds, isNotified: false)
        deviceListeners.notify([.firingCrashed(firing)])
    }
}
