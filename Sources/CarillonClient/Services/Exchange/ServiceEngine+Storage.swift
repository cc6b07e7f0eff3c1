#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Calls of this device that wait for the storage.
extension ServiceEngine {
    /// Repeats work for a call that fails because of the storage, until the end of the call cancels it.
    func storing<Value: Sendable>(of call: ServiceCall, _ work: () async throws -> Value) async throws -> Value {
        try await storage.storing(until: { waitForStorage(of: call) }, work)
    }

    /// Records that a call waits for the storage before it is sent. The end of the call cancels the wait.
    func waitForStorage(of call: ServiceCall) -> Date {
        outgoing.waitingForStorage.insert(call.id)
        return .distantFuture
    }

    /// Records that a reply waits for the storage. Returns when the reply is dropped.
    func waitForStorage(of call: StoredCall) -> Date {
        outgoing.waitingForStorage.insert(call.id)
        return lastMoment(of: call)
    }

    /// Returns when a reply that cannot be stored is dropped: at the end of its call, or a minute after the failure if that is
    /// later than the end.
    func lastMoment(of call: StoredCall) -> Date {
        let now = Date.now
        // A call that an earlier version stored has no end: its full deadline counts from now.
        let moment = call.endDate ?? now + TimeInterval(call.deadlineSeconds)
        return moment > now ? moment : now + 60
    }

    /// Returns the error of a call that ends without a result.
    func errorAtEnd(of id: String) -> ServiceError {
        guard outgoing.waitingForStorage.contains(id), health.isFailing else { return ServiceCall.timeIsOver }
        return ServiceError(.storageUnavailable, "The request or its reply could not be stored until the deadline.")
    }
}
