import GRDB
import Synchronization
import TestSupport
import Testing

@testable import CarillonClient

/// When the app is notified that the storage fails, and which operation retries.
@Suite(.timeLimit(.minutes(5)))
final class StorageHealthTests: Sendable {
    private let health = StorageHealth()
    private let heard = Mutex<[StorageHealth.Change]>([])

    private let full = PushError(.storageUnavailable, "full")

    init() {
        health.setListener { [weak self] change in self?.heard.withLock { $0.append(change) } }
    }

    private var changes: [StorageHealth.Change] { heard.withLock { $0 } }

    @Test func `failures are reported once, and the recovery when everything works`() {
        health.transactionWrote()
        #expect(changes.isEmpty && !health.isFailing)
        health.transactionFailed(PushError(.storageDamaged, "damaged"))
        #expect(changes.isEmpty)
        health.transactionFailed(full)
        health.transactionFailed(full)
        let first = health.operationFailed(full)
        let second = health.operationFailed(full)
        #expect(changes == [.failed("full")])
        health.transactionWrote()
        health.operationEnded(first, succeeded: true)
        #expect(changes == [.failed("full")] && health.isFailing)
        health.operationEnded(second, succeeded: true)
        health.operationEnded(second, succeeded: false)
        #expect(changes == [.failed("full"), .recovered] && !health.isFailing)
    }

    @Test func `after an abandoned operation the storage fails until another one succeeds`() {
        health.operationEnded(health.operationFailed(full), succeeded: false)
        #expect(changes == [.failed("full")] && health.isFailing)
        // A transaction needs less space than a file.
        health.transactionWrote()
        health.operationEnded(health.operationFailed(full), succeeded: false)
        #expect(changes == [.failed("full")] && health.isFailing)
        health.operationEnded(health.operationFailed(full), succeeded: true)
        #expect(changes == [.failed("full"), .recovered] && !health.isFailing)
        health.operationEnded(health.operationFailed(full), succeeded: false)
        health.fileWritten()
        #expect(changes.count == 4 && !health.isFailing)
        // The operation is a transaction, and another one writes less.
        health.transactionFailed(full)
        let transaction = health.operationFailed(full)
        health.transactionWrote()
        health.operationEnded(transaction, succeeded: false)
        #expect(changes.count == 5 && health.isFailing)
        health.transactionWrote()
        #expect(changes.count == 6 && !health.isFailing)
    }

    @Test func `a waiter retries when a transaction writes after a failure, or when its time is over`() async throws {
        try await health.wait(atMost: .milliseconds(1))
        health.transactionFailed(full)
        // A wait of an hour outlasts the time limit of the suite.
        try await withThrowingTaskGroup(of: Void.self) { [health, full] group in
            group.addTask { try await health.wait(atMost: .seconds(3600)) }
            group.addTask {
                // The wait can begin after the first of these changes.
                while !Task.isCancelled {
                    health.transactionFailed(full)
                    health.transactionWrote()
                    try? await Task.sleep(for: .milliseconds(20))
                }
            }
            _ = try await group.next()
            group.cancelAll()
        }
        let cancelled = Task { [health] in try await health.wait(atMost: .seconds(3600)) }
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
    }

    @Test func `the waits grow up to a minute`() {
        var schedule = ClientReconnectSchedule(.init(initial: .seconds(1), maximum: .seconds(3600), jitter: 0))
        let waits = (0..<8).map { _ in schedule.storageFailed() }
        let seconds: [Int64] = [1, 2, 4, 8, 16, 32, 60, 60]
        #expect(waits == seconds.map { Duration.seconds($0) })
    }

    @Test func `a transaction that only reads does not show that the storage can be written`() async throws {
        let directory = TemporaryDirectory()
        let store = try ClientStore(directory: directory.path)
        func run(_ sql: String) async throws -> Bool {
            try await store.inStep { database in
                do {
                    try store.transaction(reachingDisk: false, in: database) { try database.execute(sql: sql) }
                    return true
                } catch {
                    return false
                }
            }
        }
        #expect(try await !run("INSERT INTO service_upload VALUES (NULL)"))
        #expect(store.health.isFailing)
        #expect(try await run("SELECT * FROM service_upload"))
        #expect(store.health.isFailing)
        #expect(try await run("INSERT INTO service_upload VALUES ('a')"))
        #expect(!store.health.isFailing)
    }
}
