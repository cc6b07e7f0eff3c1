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
        guard let call = try? await call(id) else { return await drop(result, of: id, stored) }
        let isAwaited = pending[id] != nil
        let files = (try? result.get())?.attachments.map(inbox.relative) ?? []
        let kept = isAwaited ? nil : KeptResult(call, result, files: files, fileBytes: fileBytes)
        let ended: EndedCall
        ownMemory.calls[id] = nil
        localTimes.removeValue(forKey: id)?.cancel()
        do {
            ended = try await box.end(
                id, event: stored?.number, keeping: kept, sparing: unconfirmed.told, at: Self.now)
        } catch {
            return logger.error("A result could not be stored", metadata: ["reason": "\(error)"])
        }
        guard ended.isFirst else { return await drop(result, of: id, stored) }
        // The server need not keep files that nobody fetched, or that were fetched without a notice.
        removeAttachments(call.files)
        if let kept {
            tell(kept)
        } else {
            clientListeners.tell([.didReceive(from: ServiceApplication(call.peer), result, id: id)])
            pending.removeValue(forKey: id)?.resume(result.mapError { $0 })
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
        do {
            try await box.confirmResult(id)
        } catch {
            logger.error("A result could not be forgotten", metadata: ["reason": "\(error)"])
        }
    }

    /// A delegate returned from the result of a request.
    nonisolated func delegateReturned(_ id: String) {
        // Ends with one change of the storage.
        Task { await confirm(id) }
    }

    /// Tells the results that earlier runs left.
    func tellKeptResults() async {
        do {
            await removeSurplusResults()
            for kept in try await box.results() where !unconfirmed.told.contains(kept.id) { tell(kept) }
        } catch {
            logger.error("Results of requests cannot be read", metadata: ["reason": "\(error)"])
        }
    }

    /// Removes results that are too old, once an hour.
    func runResultRemoval() async {
        while !Task.isCancelled {
            do { try await Task.sleep(for: .seconds(3600)) } catch { return }
            await removeSurplusResults()
        }
    }

    private func removeSurplusResults() async {
        do {
            removed(try await box.removeSurplusResults(sparing: unconfirmed.told, at: Self.now))
        } catch {
            logger.error("Old results could not be removed", metadata: ["reason": "\(error)"])
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
