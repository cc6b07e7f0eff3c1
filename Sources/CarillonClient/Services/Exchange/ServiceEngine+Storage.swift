import CarillonBasics
import Logging

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Work that is repeated when the storage fails.
extension ServiceEngine {
    nonisolated var health: StorageHealth { box.store.health }

    /// Repeats work that fails because of the storage, until it succeeds.
    ///
    /// - Parameter moment: Returns when the work is given up. It is called at the first failure.
    /// - Throws: What the work throws for another reason; ``ServiceError`` with ``ServiceError/Code/storageUnavailable`` at the
    ///   moment; and `CancellationError`.
    func storing<Value: Sendable>(
        until moment: () async -> Date = { .distantFuture }, _ work: () async throws -> Value
    ) async throws -> Value {
        var schedule = ClientReconnectSchedule(server.api.backOff)
        var failing: (number: UInt64, end: Date)?
        var hasSucceeded = false
        defer { if let failing { health.operationEnded(failing.number, succeeded: hasSucceeded) } }
        while true {
            do {
                let value = try await work()
                hasSucceeded = true
                return value
            } catch {
                guard let fault = PushError.storageFault(error) else { throw error }
                let end: Date
                if let failing {
                    end = failing.end
                } else {
                    let number = health.operationFailed(fault)
                    logger.warning("cannot store; retrying", metadata: ["reason": "\(fault.message)"])
                    end = await moment()
                    failing = (number, end)
                }
                let left = end.timeIntervalSinceNow
                guard left > 0 else { throw ServiceError(.storageUnavailable, fault.message) }
                try await health.wait(atMost: min(schedule.storageFailed(), .seconds(left)))
            }
        }
    }

    /// Makes a change of the storage that its caller does not depend on. A change that fails because of the storage is repeated while the
    /// client runs, until it succeeds. A request has few of them, so that their number is limited with that of requests.
    func change(_ name: String, _ body: @escaping @Sendable () async throws -> Void) async {
        do {
            try await body()
        } catch {
            guard PushError.storageFault(error) != nil else { return note(error, name) }
            unstored.append((name, body))
            unstoredChanges.send()
        }
    }

    /// Repeats the changes that failed.
    func runUnstored() async {
        while !Task.isCancelled {
            guard let (name, body) = unstored.first else {
                await unstoredChanges.wait()
                continue
            }
            do {
                try await storing { try await body() }
            } catch {
                if Task.isCancelled { return }
                note(error, name)
            }
            unstored.removeFirst()
        }
    }

    private func note(_ error: any Error, _ name: String) {
        guard !(error is CancellationError) else { return }
        logger.error("cannot store", metadata: ["operation": "\(name)", "reason": "\(error)"])
    }

    // MARK: Calls of this device

    /// Repeats work for a call that fails because of the storage, until the end of the call cancels it.
    func storing<Value: Sendable>(of call: ServiceCall, _ work: () async throws -> Value) async throws -> Value {
        try await storing(until: { waitForStorage(of: call) }, work)
    }

    /// Notes that the storage keeps a call from being sent. The end of the call cancels the wait.
    func waitForStorage(of call: ServiceCall) -> Date {
        keptByStorage.insert(call.id)
        return .distantFuture
    }

    /// Notes that the storage keeps a reply from being received, and returns when the reply is given up.
    func waitForStorage(of call: StoredCall) -> Date {
        keptByStorage.insert(call.id)
        return lastMoment(of: call)
    }

    /// Returns when a reply that cannot be stored is given up: at the end of its call, or a minute after the failure if that is later than the
    /// end.
    func lastMoment(of call: StoredCall) -> Date {
        let now = Date.now
        // A call that an earlier version stored has at least as long as it was given.
        let moment = call.endDate ?? now + TimeInterval(call.deadlineSeconds)
        return moment > now ? moment : now + 60
    }

    /// Returns the error of a call that ends without a result.
    func errorAtEnd(of id: String) -> ServiceError {
        guard keptByStorage.contains(id), health.isFailing else { return ServiceCall.timeIsOver }
        return ServiceError(.storageUnavailable, "The request or its reply could not be stored until the deadline.")
    }
}
