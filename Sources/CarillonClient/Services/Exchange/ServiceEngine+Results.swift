import CarillonBasics
import CarillonWire
import Logging

/// The results of requests. A result is stored until the app confirms it, unless a task waits for it.
extension ServiceEngine {
    /// Gives a request its one result: to the task that waits for it, or to delegates and the next reader of late replies. The request ends
    /// with its timer and its stored deadline; a second result is dropped.
    ///
    /// - Parameter fileBytes: The size of the files of the result.
    func finish(
        _ id: String, _ result: Result<ServiceReply, ServiceError>, _ stored: StoredServiceEvent?, fileBytes: Int64 = 0
    ) async {
        let known: StoredCall?
        do {
            known = try await storing { try await call(id) }
        } catch {
            return logger.error("a result waits for the next run", metadata: ["reason": "\(error)"])
        }
        guard let call = known, ending.insert(id).inserted else { return await drop(result, of: id, stored) }
        defer { ending.remove(id) }
        let isAwaited = pending[id] != nil
        let files = (try? result.get())?.attachments.map(inbox.relative) ?? []
        let kept = isAwaited ? nil : KeptResult(call, result, files: files, fileBytes: fileBytes)
        let ended: EndedCall
        ownMemory.calls[id] = nil
        localTimes.removeValue(forKey: id)?.cancel()
        do {
            ended = try await storing {
                // The task that waits has the result, though its end cannot be stored yet.
                defer { pending.removeValue(forKey: id)?.resume(result.mapError { $0 }) }
                return try await box.end(
                    id, event: stored?.number, keeping: kept, sparing: unconfirmed.told, at: Self.now)
            }
        } catch {
            return logger.error("a result waits for the next run", metadata: ["reason": "\(error)"])
        }
        guard ended.isFirst else { return await drop(result, of: id, stored) }
        // The server need not keep files that nobody fetched, or that were fetched without a notice.
        removeAttachments(call.files)
        clientProgress.ended(id)
        if let kept {
            tell(kept)
        } else {
            clientListeners.tell([.didReceive(from: ServiceApplication(call.peer), result, id: id)])
        }
        removed(ended.removed)
    }

    /// The request has ended: a result that comes later is nobody's.
    private func drop(
        _ result: Result<ServiceReply, ServiceError>, of id: String, _ stored: StoredServiceEvent?
    ) async {
        logger.info("dropping the result of a request that has ended", metadata: ["id": "\(id)"])
        if let reply = try? result.get() { inbox.removeMessages(of: reply.attachments.map(inbox.relative)) }
        if let stored { await forget(stored) }
    }

    private func tell(_ kept: KeptResult) {
        guard !runner.isOtherUserPending else {
            heldBack.insert(kept.id)
            return
        }
        heldBack.remove(kept.id)
        let (id, result) = (kept.id, kept.result(inbox.absolute))
        unconfirmed.kept(id, isTold: !clientListeners.livingDelegates.isEmpty)
        clientListeners.tell([.didReceive(from: kept.application, result, id: id)])
        late.add(
            LateReply(id: id, provider: kept.application, method: kept.serviceMethod, result: result) { [weak self] in
                await self?.confirm(id)
            })
    }

    /// The app has a result: a delegate returned, or a reader of late replies confirmed it.
    func confirm(_ id: String) async {
        guard unconfirmed.ended(id) else { return }
        late.remove(id)
        await change("confirm result") { [box] in try await box.confirmResult(id) }
    }

    /// A delegate returned from the result of a request.
    nonisolated func delegateReturned(_ id: String) {
        // Ends with one change of the storage.
        Task { await confirm(id) }
    }

    /// Tells the results that earlier runs left.
    func tellKeptResults() async {
        await removeSurplusResults()
        await change("read results") { [weak self, box] in await self?.tell(try await box.results()) }
    }

    /// Tells the results that came, or were left, while the app named another user. The device has kept its user.
    func tellHeldBackResults() async {
        guard !heldBack.isEmpty else { return }
        await change("read results") { [weak self, box] in
            let results = try await box.results()
            await self?.tellHeldBack(results)
        }
    }

    private func tellHeldBack(_ results: [KeptResult]) {
        for kept in results where heldBack.contains(kept.id) { tell(kept) }
    }

    private func tell(_ results: [KeptResult]) {
        for kept in results where !unconfirmed.told.contains(kept.id) { tell(kept) }
    }

    /// Removes results that are too old, once an hour.
    func runResultRemoval() async {
        while !Task.isCancelled {
            do { try await Task.sleep(for: .seconds(3600)) } catch { return }
            await removeSurplusResults()
        }
    }

    private func removeSurplusResults() async {
        let told = unconfirmed.told
        await change("remove old results") { [weak self, box] in
            await self?.removed(try await box.removeSurplusResults(sparing: told, at: Self.now))
        }
    }

    private func removed(_ results: [RemovedResult]) {
        for result in results {
            _ = unconfirmed.ended(result.id)
            late.remove(result.id)
            inbox.removeMessages(of: result.files)
            clientListeners.tell([.resultRemoved(from: result.application, id: result.id)])
        }
    }
}
