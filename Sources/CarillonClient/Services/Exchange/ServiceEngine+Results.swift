import CarillonBasics
import CarillonWire
import Logging

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The results of requests. A result is stored until the app confirms it, unless a task waits for it.
extension ServiceEngine {
    /// Delivers the result of a request: to the waiting task, or to delegates and the next reader of late replies. The request
    /// ends with its timer and its stored deadline. A second result is dropped.
    ///
    /// - Parameter fileBytes: The size of the files of the result.
    func finish(
        _ id: String, _ result: Result<ServiceReply, ServiceError>, _ stored: StoredServiceEvent?, fileBytes: Int64 = 0
    ) async {
        let known: StoredCall?
        do {
            known = try await storage.storing { try await call(id) }
        } catch {
            return logger.error("a result waits for the next run", metadata: ["reason": "\(error)"])
        }
        guard let call = known, results.beginsEnding(id) else { return await drop(result, of: id, stored) }
        defer { results.ended(id) }
        let isAwaited = outgoing.pending[id] != nil
        let isDelivered = results.unconfirmed.isDelivered(id)
        let paths = (try? result.get())?.attachments.map(inbox.relative) ?? []
        let kept = isAwaited || isDelivered ? nil : KeptResult(call, result, files: paths, fileBytes: fileBytes)
        let ended: EndedCall
        ownCache.calls[id] = nil
        outgoing.cancelTimer(of: id)
        do {
            ended = try await storage.storing(until: { kept == nil ? .distantFuture : lastMoment(to: result, of: call) }) {
                // The waiting task receives the result, although the end of the request cannot be stored yet.
                defer { if outgoing.deliver(result, of: id) { results.unconfirmed.delivered(id) } }
                return try await box.end(
                    id, event: stored?.number, keeping: kept, sparing: delegateResults.ids, at: Self.now)
            }
        } catch let error as ServiceError {
            return await endWithStorageError(call, error, paths, stored)
        } catch {
            // The next run of this process does not report the result again.
            if isAwaited { clientListeners.notify([.didReceive(from: ServiceApplication(call.peer), result, id: id)]) }
            return logger.error("a result waits for the next run", metadata: ["reason": "\(error)"])
        }
        let isWithApp = results.unconfirmed.isDelivered(id)
        results.unconfirmed.deleted(id)
        guard ended.isFirst else {
            // The files of a result that the app received are kept.
            if isWithApp { return }
            return await drop(result, of: id, stored)
        }
        outgoing.endSending(id)
        // Removes files from the server that were not fetched, or whose download was not reported.
        self.files.removeAttachments(call.files)
        clientProgress.ended(id)
        if let kept {
            notify(kept)
        } else if !isDelivered {
            clientListeners.notify([.didReceive(from: ServiceApplication(call.peer), result, id: id)])
        }
        removed(ended.removed)
    }

    /// Returns when a result that cannot be stored is dropped. If the result is an error of the storage, one attempt is enough.
    private func lastMoment(to result: Result<ServiceReply, ServiceError>, of call: StoredCall) -> Date {
        if case .failure(let error) = result, error.code == .storageUnavailable { return .now }
        return lastMoment(of: call)
    }

    /// Reports that a result could not be stored until the last moment. The request is deleted when the storage works again.
    private func endWithStorageError(
        _ call: StoredCall, _ error: ServiceError, _ paths: [String], _ stored: StoredServiceEvent?
    ) async {
        let id = call.id
        logger.error("cannot store result; request ends", metadata: ["id": "\(id)", "reason": "\(error.text)"])
        inbox.removeMessages(of: paths)
        outgoing.endSending(id)
        self.files.removeAttachments(call.files)
        clientProgress.ended(id)
        let kept = KeptResult(call, .failure(error), files: [], fileBytes: 0)
        results.couldNotStore(kept)
        notify(kept)
        // No other result is reported if one arrives before the deletion.
        results.unconfirmed.delivered(id)
        await storage.change("forget request") { [weak self, box] in
            _ = try await box.finish(id, event: stored?.number)
            await self?.deleted(id)
        }
    }

    /// Drops the later result of a request that has ended.
    private func drop(
        _ result: Result<ServiceReply, ServiceError>, of id: String, _ stored: StoredServiceEvent?
    ) async {
        logger.info("dropping the result of a request that has ended", metadata: ["id": "\(id)"])
        if let reply = try? result.get() { inbox.removeMessages(of: reply.attachments.map(inbox.relative)) }
        if let stored { await deleteEvent(stored) }
    }

    private func notify(_ kept: KeptResult, to audience: ServiceResults.Audience = .all) {
        guard !runner.session.user.isOtherPending else {
            results.deferred[kept.id] = audience
            return
        }
        results.deferred[kept.id] = nil
        let (id, result) = (kept.id, kept.result(inbox.absolute))
        // A delegate that returns is recorded after this.
        let isNotified = clientListeners.deliver([.didReceive(from: kept.application, result, id: id)], isKept: true)
        results.unconfirmed.kept(id, isNotified: isNotified, isSuspect: kept.starts > 0)
        guard audience == .all else { return }
        late.add(
            LateReply(id: id, provider: kept.application, method: kept.serviceMethod, result: result) { [weak self] in
                await self?.confirm(id)
            })
    }

    /// Records that the app has handled a result: a delegate returned, or a reader of late replies confirmed it.
    func confirm(_ id: String) async {
        defer { delegateResults.confirmed(id) }
        guard results.unconfirmed.ended(id) else { return }
        results.deferred[id] = nil
        suspects.end(.result(id))
        late.remove(id)
        clientListeners.release { $0.isResult(of: id) }
        // The storage has only the request, which `endWithStorageError` deletes.
        if results.confirmUnstored(id) { return }
        results.unconfirmed.delivered(id)
        await storage.change("confirm result") { [weak self, box] in
            try await box.confirmResult(id)
            await self?.deleted(id)
        }
    }

    private func deleted(_ id: String) { results.unconfirmed.deleted(id) }

    /// Called when a delegate has returned from the result of a request.
    nonisolated func delegateReturned(_ id: String) {
        // The task ends with one change of the storage.
        Task { await confirm(id) }
    }

    /// Called when the delegates were called with the result of a request, or all of them were removed before.
    nonisolated func delegatesFinished(_ id: String, wasDelivered: Bool) {
        delegateResults.finished(id)
        // The task ends at once.
        if !wasDelivered { Task { await missed(id) } }
    }

    private func missed(_ id: String) {
        delegateResults.finished(id)
        if results.unconfirmed.missed(id) {
            results.deferred[id] = .delegates
            runner.serviceChanges.send()
        }
        released(id, by: .delegate)
    }

    /// Reports the results of earlier runs.
    func notifyKeptResults() async {
        await removeSurplusResults()
        await removeCrashingResults()
        for kept in results.unstored where !results.unconfirmed.notified.contains(kept.id) { notify(kept) }
        await storage.change("read results") { [weak self, box] in await self?.notify(try await box.results()) }
    }

    /// Reports the results that arrived, or were kept, while another user that the app had set was pending. The device has kept
    /// its user.
    func notifyDeferredResults() async {
        notifyDeferred(results.unstored)
        guard !results.deferred.isEmpty else { return }
        await storage.change("read results") { [weak self, box] in
            let stored = try await box.results()
            await self?.notifyDeferred(stored)
        }
    }

    private func notifyDeferred(_ stored: [KeptResult]) {
        for kept in stored {
            if let audience = results.deferred[kept.id] { notify(kept, to: audience) }
        }
    }

    private func notify(_ stored: [KeptResult]) {
        for kept in stored where !results.unconfirmed.notified.contains(kept.id) && !results.unconfirmed.isDelivered(kept.id)
        {
            notify(kept)
        }
    }

    /// Removes expired results, once an hour.
    func runResultRemoval(every interval: Duration = .seconds(3600)) async {
        while !Task.isCancelled {
            do { try await Task.sleep(for: interval) } catch { return }
            await removeSurplusResults()
        }
    }

    private func removeSurplusResults() async {
        await storage.change("remove old results") { [weak self, box, delegateResults] in
            await self?.removed(try await box.removeSurplusResults(sparing: delegateResults.ids, at: Self.now))
        }
    }

    func removed(_ removed: [RemovedResult]) {
        for result in removed {
            // The app has received the result and its files.
            if results.unconfirmed.isDelivered(result.id) { continue }
            if results.unconfirmed.notified.contains(result.id) { delegateResults.removed(result.id) }
            _ = results.unconfirmed.ended(result.id)
            results.deferred[result.id] = nil
            suspects.end(.result(result.id))
            late.remove(result.id)
            clientListeners.cancelCalls { $0.isResult(of: result.id) }
            inbox.removeMessages(of: result.files)
            clientListeners.notify([.resultRemoved(from: result.application, id: result.id, reason: result.reason)])
        }
    }
}

extension ServiceClientEvent {
    fileprivate func isResult(of id: String) -> Bool {
        if case .didReceive(_, _, id) = self { true } else { false }
    }
}
