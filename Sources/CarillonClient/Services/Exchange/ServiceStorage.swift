import CarillonBasics
import Logging
import Synchronization

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The storage of services, and the changes that could not be stored yet.
final class ServiceStorage: Sendable {
    private struct Change: Sendable {
        let name: String
        let body: @Sendable () async throws -> Void
    }

    let box: ServiceBox
    private let backOff: PushClient.BackOff
    private let logger: Logger
    /// The changes in their order.
    private let unstored = Mutex<[Change]>([])
    private let changes = Signal()

    init(box: ServiceBox, backOff: PushClient.BackOff, logger: Logger) {
        self.box = box
        self.backOff = backOff
        self.logger = logger
    }

    var health: StorageHealth { box.store.health }

    /// Repeats work that fails because of the storage, until it succeeds.
    ///
    /// - Parameter moment: Returns when the attempts end. It is called at the first failure.
    /// - Throws: Other errors of the work; ``ServiceError`` with ``ServiceError/Code/storageUnavailable`` at the moment; and
    ///   `CancellationError`.
    func storing<Value: Sendable>(
        until moment: () async -> Date = { .distantFuture }, _ work: () async throws -> Value
    ) async throws -> Value {
        var schedule = ClientReconnectSchedule(backOff)
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

    /// Makes a change of the storage on which its caller does not depend. A change that fails because of the storage is repeated
    /// while the client runs, until it succeeds. A request causes only a few changes, so that the limit of requests also limits
    /// their number.
    func change(_ name: String, _ body: @escaping @Sendable () async throws -> Void) async {
        do {
            try await body()
        } catch {
            guard PushError.storageFault(error) != nil else { return note(error, name) }
            unstored.withLock { $0.append(Change(name: name, body: body)) }
            changes.send()
        }
    }

    /// Repeats the changes that failed.
    func run() async {
        while !Task.isCancelled {
            guard let change = unstored.withLock({ $0.first }) else {
                await changes.wait()
                continue
            }
            do {
                try await storing { try await change.body() }
            } catch {
                if Task.isCancelled { return }
                note(error, change.name)
            }
            unstored.withLock { _ = $0.removeFirst() }
        }
    }

    private func note(_ error: any Error, _ name: String) {
        guard !(error is CancellationError) else { return }
        logger.error("cannot store", metadata: ["operation": "\(name)", "reason": "\(error)"])
    }
}
