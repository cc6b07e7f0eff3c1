import CarillonWire
import Logging

/// Requests whose handler ends the process.
extension ServiceEngine {
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
