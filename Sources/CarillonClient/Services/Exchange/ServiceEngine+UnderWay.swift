import CarillonWire
import Logging

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A request from the app's call until the server, or the provider on this machine, has the request.
struct CallUnderWay: Sendable {
    let to: ServiceApplication
    let owner: CallOwner
    let work: Task<Void, Never>
    let outcome: PendingResult<Void>
    /// The device that receives the request, after it is found.
    var peer: ServicePeer?

    /// Ends the work. The app receives the error at once, and does not wait for the cleanup.
    func end(with error: any Error) {
        outcome.resume(.failure(error))
        work.cancel()
    }
}

/// The sending of requests. The end of a call limits all waits of the call: the registration, the lookup, uploads, the server and
/// the result.
extension ServiceEngine {
    /// Sends a request. Its only result is then in `result`, and for a later run in ``late``.
    ///
    /// - Throws: ``ServiceError``, with ``ServiceError/Code/deadlineExceeded`` when the call ends, or with
    ///   ``ServiceError/Code/storageUnavailable`` if it waits for the storage then; and `CancellationError`.
    func send(_ call: ServiceCall, result: PendingResult<ServiceReply>?) async throws {
        guard ServiceRequestID(call.id)?.description == call.id else {
            throw ServiceError(
                .fieldInvalid, "The id of a request must be 32 hexadecimal digits in lower case; makeRequestID() makes one.")
        }
        guard outgoing.underWay[call.id] == nil, ownCache.calls[call.id] == nil, outgoing.withdrawals[call.id] == nil else {
            throw Self.idIsInUse
        }
        let owner = callOwner
        let use = requestIDs.use(call.id)
        if use == .cancelled {
            clientProgress.ended(call.id)
            throw Self.wasCancelled
        }
        let outcome = PendingResult<Void>()
        // The task ends when the server has the request; it is cancelled with the call.
        let work = Task {
            do {
                if use == .unknown, try await self.storing(of: call, { try await self.call(call.id) }) != nil {
                    throw Self.idIsInUse
                }
                try await self.sendWhole(call, result)
                if !outcome.resume(.success(())) { self.withdraw(call.id) }
            } catch {
                outcome.resume(.failure(error))
            }
            self.outgoing.underWay[call.id] = nil
            self.outgoing.waitingForStorage.remove(call.id)
        }
        outgoing.underWay[call.id] = CallUnderWay(to: call.to, owner: owner, work: work, outcome: outcome)
        let timer = Self.timer(until: call.ends) { [self] in
            let error = await errorAtEnd(of: call.id)
            outcome.resume(.failure(error))
        }
        defer { timer.cancel() }
        do {
            try await outcome.value
        } catch {
            work.cancel()
            clientProgress.ended(call.id)
            throw error
        }
    }

    static let idIsInUse = ServiceError(.fieldInvalid, "Another request has this id.")
    static let wasCancelled = ServiceError(.cancelled, "The request was cancelled.")

    /// Sends a request, and waits for its result.
    ///
    /// - Throws: As ``send(_:result:)``, and the error that is the result.
    func result(of call: ServiceCall) async throws -> ServiceReply {
        let result = PendingResult<ServiceReply>()
        try await send(call, result: result)
        let timer = Self.timer(until: call.ends) { [self] in
            let error = await errorAtEnd(of: call.id)
            if result.resume(.failure(error)) { await withdraw(call.id) }
        }
        defer { timer.cancel() }
        do {
            return try await result.value
        } catch let error as CancellationError {
            withdraw(call.id)
            throw error
        }
    }

    /// Runs work at a moment, unless the timer is cancelled before.
    private static func timer(
        until moment: ContinuousClock.Instant, _ work: @escaping @Sendable () async -> Void
    ) -> Task<Void, any Error> {
        // The task ends at the moment, or is cancelled at the end of the call.
        Task {
            try await Task.sleep(until: moment, clock: .continuous)
            await work()
        }
    }

    /// Cancels a request that the server does not have yet, or may not have. Its files are removed from the server.
    ///
    /// - Returns: False for any other request.
    func cancelUnderWay(_ id: String) -> Bool {
        if requestIDs.cancel(id) {
            clientProgress.ended(id)
            return true
        }
        guard let call = outgoing.underWay[id] else { return false }
        call.end(with: Self.wasCancelled)
        return true
    }

    /// Cancels the requests to a device that are being sent. Returns their number.
    func cancelUnderWay(to peer: ServicePeer) -> Int {
        let ids = outgoing.underWay.filter { id, call in
            ownCache.calls[id]?.peer == peer || call.peer == peer || call.to == ServiceApplication(peer)
        }.keys
        for id in ids { outgoing.underWay[id]?.end(with: Self.wasCancelled) }
        return ids.count
    }

    /// Waits until the server has confirmed all cancellations and removals, up to a time limit.
    func waitForRemovals(atMost limit: Duration) async {
        let end = ContinuousClock.now + limit
        while !outgoing.withdrawals.isEmpty || !outgoing.underWay.isEmpty || files.isRemoving, ContinuousClock.now < end {
            do { try await Task.sleep(for: .milliseconds(10)) } catch { return }
        }
    }

    /// Whether the server may have a request whose sending ended with an error.
    static func mayHaveArrived(_ error: any Error) -> Bool {
        error is CancellationError || (error as? ServiceError)?.code == .deadlineExceeded
    }
}
