import Logging

/// Firings that the app is given: a firing whose reader ends the process is not given to the app for ever.
extension SessionRunner {
    /// Waits for the turn of a firing that was under way when the process ended, and stores that the app is given it. Returns false if the
    /// iteration is over before.
    ///
    /// If the storage cannot be written, the app is given the firing as well.
    func beginFiring(_ entry: FiringQueue.Entry, isOver: @Sendable () -> Bool) async -> Bool {
        if entry.starts > 0 {
            guard await firingStarts.hasTurn(entry, isOver: isOver) else { return false }
        }
        guard firingStarts.began(entry) else { return true }
        do throws(PushError) {
            try await perform(mustReachDisk: false) { [firingStarts] _, _ in
                // The client may have stopped meanwhile.
                firingStarts.hasStarted(entry) ? [.write(.saveFiringStarts(id: entry.id, entry.starts + 1))] : []
            }
        } catch {
            firingStarts.handled(entry)
            logger.warning(
                "cannot store that the app is given a firing",
                metadata: ["id": "\(entry.id)", "reason": "\(error.message)"])
        }
        return true
    }

    /// The app is done with a firing. It is tried again until that is stored: the server sends no more than its window before.
    func firingHandled(_ entry: FiringQueue.Entry) {
        firingStarts.handled(entry)
        begin({ session, _ in session.firingHandled(entry.firing) }) { [weak self] result in
            guard let self, case .failure = result else { return }
            again { $0.firingHandled(entry) }
        }
    }

    /// The iteration that was given a firing ended before it asked for the next one: the firing comes again at the next connection.
    func firingBrokeOff(_ entry: FiringQueue.Entry) {
        guard let started = firingStarts.take(entry.suspect) else { return firings.released(entry) }
        // The firing is not taken before its former starts are stored.
        takeBack(started) { [firings] in firings.released(entry) }
    }

    /// Stores that a firing did not end the process. Nothing of a firing of a former owner stays.
    func takeBack(_ entry: FiringQueue.Entry, done: @escaping @Sendable () -> Void = {}) {
        begin(
            mustReachDisk: false,
            { [firings] _, _ in
                [.write(.saveFiringStarts(id: entry.id, firings.isCurrent(entry) ? entry.starts : 0))]
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
        subscriptions.fired(firing.subscriptionID, at: firing.milliseconds)
        deviceListeners.tell([.firingCrashed(firing)])
    }
}
