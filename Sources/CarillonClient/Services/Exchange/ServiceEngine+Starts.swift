import CarillonWire
import Logging

/// The handling of requests and results for which the process ended in the app's code.
extension ServiceEngine {
    /// Stores that a delegate is called with a result, before the call. The delegate is called also if the storage cannot be
    /// written, and if the client does not run: the process may end regularly then.
    ///
    /// - Returns: False if the app set another user meanwhile. If the device keeps its user, the result is reported again.
    func willCallDelegate(with id: String) async -> Bool {
        await begin(id, with: .delegate)
        guard isBetweenUsers else { return true }
        // A result that only a task receives is not delivered again. Therefore its delegate is called now.
        let isPostponed = results.unconfirmed.postpone(id)
        return !isPostponed
    }

    /// Waits until the server has decided whether the device keeps its user. The listeners drop the request of a former user.
    ///
    /// - Returns: False if the run ends before that. The next run calls the delegate when it handles the request again.
    func willCallDelegateWithRequest() async -> Bool {
        while isBetweenUsers {
            guard isRunning else { return false }
            do { try await Task.sleep(for: .milliseconds(10)) } catch { return false }
        }
        return true
    }

    /// The results for which no task waits, for one reader at a time. A start is stored before a result is delivered to the
    /// reader, and removed when the reader requests the next one, or its iteration ends.
    nonisolated func replies() -> AsyncStream<LateReply> {
        late.stream(
            .init(
                begins: { [weak self] id in await self?.beginReading(id) ?? true },
                ended: { [weak self] id in self?.readerEnded(id) },
                notDelivered: { [weak self] id in await self?.released(id, by: .reader) }))
    }

    /// Returns false if a result was confirmed or removed meanwhile, or belongs to a former user. Such a result is not delivered
    /// to the reader.
    private func beginReading(_ id: String) async -> Bool {
        await waitForUser(of: id)
        guard results.unconfirmed.contains(id) else { return false }
        await begin(id, with: .reader)
        await waitForUser(of: id)
        return results.unconfirmed.contains(id)
    }

    /// Waits until the server has decided whether the device keeps the user of a result, or the task is cancelled.
    private func waitForUser(of id: String) async {
        while isBetweenUsers, results.unconfirmed.contains(id) {
            do { try await Task.sleep(for: .milliseconds(10)) } catch { return }
        }
    }

    private func begin(_ id: String, with recipient: UnconfirmedResults.Recipient) async {
        await waitForTurn(of: id)
        guard isRunning, !Task.isCancelled, results.unconfirmed.begins(id, with: recipient) else {
            // If the result is started, the turn belongs to other code of the app.
            if !results.unconfirmed.started.contains(id) { suspects.end(.result(id)) }
            return
        }
        do throws(PushError) {
            try await box.resultStarted(id)
        } catch {
            logger.warning("cannot store that the app is given a result", metadata: ["reason": "\(error.message)"])
        }
    }

    /// Waits until a result that was being handled when the process ended can be delivered to the app, or the client stops.
    private func waitForTurn(of id: String) async {
        while isRunning, results.unconfirmed.isSuspect(id), !suspects.begin(.result(id), at: .now) {
            do { try await Task.sleep(for: .milliseconds(10)) } catch { return }
        }
    }

    /// Called when the reader of a result requests the next one, or its iteration ended.
    nonisolated func readerEnded(_ id: String) {
        // The task ends at once.
        Task { await released(id, by: .reader) }
    }

    /// Records that the app's code ended without the process, and did not confirm the result.
    func released(_ id: String, by recipient: UnconfirmedResults.Recipient) {
        guard results.unconfirmed.released(id, by: recipient) else { return }
        suspects.end(.result(id))
        box.scheduleEnd(ofResults: [id], logger: logger)
    }

    /// Removes the starts of delegates that did not return, and of readers, because the process may end regularly now.
    func removeResultStarts() {
        let started = results.unconfirmed.takeStarted()
        for id in started { suspects.end(.result(id)) }
        box.scheduleEnd(ofResults: started, logger: logger)
    }

    /// Removes the results for which the process ended too often, and reports each to the app.
    func removeCrashingResults() async {
        let notified = results.unconfirmed.notified
        await storage.change("remove results with which the process ended") { [weak self, box, logger] in
            let removed = try await box.removeCrashingResults(sparing: notified)
            for result in removed {
                logger.error(
                    "the app ended while it was given a result; the result is removed",
                    metadata: ["request": "\(result.id)", "reason": "crashed", "starts": "\(HandlerStarts.most)"])
            }
            await self?.removed(removed)
        }
    }

    /// Reports a request for which the process ended too often to the app.
    ///
    /// - Throws: ``ServiceError`` with ``ServiceError/Code/serviceFailed``, which the consumer receives.
    func checkStarts(
        of stored: StoredServiceEvent, _ request: ServiceRequestID, _ method: ServiceMethod, from peer: ServicePeer
    ) throws {
        guard HandlerStarts.isCrashing(stored.starts) else { return }
        let id = request.description
        logger.error(
            "the app ended while it handled a request; its handler is not called again",
            metadata: ["request": "\(id)", "method": "\(method.name)", "starts": "\(stored.starts)"])
        providerListeners.notify([.handlerCrashed(method, from: ServiceApplication(peer), id: id)])
        throw ServiceError(.serviceFailed, "The provider's app crashed \(stored.starts) times while it handled the request.")
    }
}
