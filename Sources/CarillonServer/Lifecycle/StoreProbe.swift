import CarillonCore
import Synchronization

/// Checks whether the store can be used. Answers in time even if the store does not.
final class StoreProbe: Sendable {
    private typealias Waiter = CheckedContinuation<StoreFault?, Never>

    private let store: any ServerStore
    private let limit: Duration
    private let check: Mutex<StoreCheck<Waiter>>

    init(_ store: any ServerStore, limit: Duration = .seconds(5)) {
        self.store = store
        self.limit = limit
        check = Mutex(StoreCheck(limit: limit))
    }

    /// Returns the fault of the store; nil if the store can be used.
    func fault() async -> StoreFault? {
        await withCheckedContinuation { continuation in
            let oldestChange = store.oldestChangeWait
            switch check.withLock({ $0.requested(continuation, oldestChange: oldestChange) }) {
            case .begin(let number): begin(number)
            case .wait: break
            case .unusable(let fault): continuation.resume(returning: fault)
            }
        }
    }

    private func begin(_ number: Int) {
        // The task ends after the limit, or when the check ends.
        let timer = Task {
            try await Task.sleep(for: self.limit)
            let (waiters, fault) = self.check.withLock { ($0.limitElapsed(number), $0.lateness) }
            for waiter in waiters { waiter.resume(returning: fault) }
        }
        // The task ends when the store answers. No other check begins before.
        Task {
            let fault = await self.ask()
            timer.cancel()
            for waiter in self.check.withLock({ $0.answered() }) { waiter.resume(returning: fault) }
        }
    }

    private func ask() async -> StoreFault? {
        do {
            try await store.checkHealth()
            try await store.checkWrites()
            return nil
        } catch {
            return error as? StoreFault ?? StoreFault(.unavailable, "\(error)")
        }
    }
}
