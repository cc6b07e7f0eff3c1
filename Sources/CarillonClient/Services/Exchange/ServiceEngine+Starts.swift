import CarillonWire
import Logging

/// Requests whose handler ends the process, and results whose delegate does.
extension ServiceEngine {
    /// Stores that a delegate is called with a result, before the call. The delegate is called as well if the storage cannot be written, and when
    /// the client does not run: the process may end in an orderly way then.
    func willCallDelegate(with id: String) async {
        guard isRunning, unconfirmed.isCalled(with: id) else { return }
        do throws(PushError) {
            try await box.resultStarted(id)
        } catch {
            logger.warning("cannot store that a delegate is called", metadata: ["reason": "\(error.message)"])
        }
    }

    /// Takes back the starts of delegates that did not return: the process may end now, in an orderly way.
    func takeBackDelegateStarts() { box.scheduleEnd(ofResults: unconfirmed.takeCalled(), logger: logger) }

    /// Removes the results with which the process ended too often. The app hears of each.
    func removeCrashingResults() async {
        let told = unconfirmed.told
        await change("remove results with which the process ended") { [weak self, box, logger] in
            let results = try await box.removeCrashingResults(sparing: told)
            for result in results {
                logger.error(
                    "the app ended while a delegate was called with a result; the result is removed",
                    metadata: ["request": "\(result.id)", "starts": "\(HandlerStarts.most)"])
            }
            await self?.removed(results)
        }
    }

    /// Has the app hear of a request that ended the process too often.
    ///
    /// - Throws: ``ServiceError`` with ``ServiceError/Code/serviceFailed``, which its consumer is answered.
    func checkStarts(
        of stored: StoredServiceEvent, _ request: ServiceRequestID, _ method: ServiceMethod, from peer: ServicePeer
    ) throws {
        guard HandlerStarts.isCrashing(stored.starts) else { return }
        let id = request.description
        logger.error(
            "the app ended while it handled a request; its handler is not called again",
            metadata: ["request": "\(id)", "method": "\(method.name)", "starts": "\(stored.starts)"])
        providerListeners.tell([.handlerCrashed(method, from: ServiceApplication(peer), id: id)])
        throw ServiceError(.serviceFailed, "The provider's app crashed \(stored.starts) times while it handled the request.")
    }
}
