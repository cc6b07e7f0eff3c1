import Synchronization

/// Limits the units of a resource that are used at the same time, such as the bytes of answers. Requests without enough free
/// units wait, and are admitted in their order.
package final class WeightedSemaphore: Sendable {
    private struct Waiter {
        var units: Int
        var continuation: CheckedContinuation<Bool, Never>
    }

    private struct State {
        var used = 0
        var waiters: [Int: Waiter] = [:]
        /// The numbers of waiters increase in the order of their requests.
        var firstWaiter = 0
        var nextWaiter = 0
    }

    private let state = Mutex(State())
    private let limit: Int
    private let mostWaiting: Int
    private let scheduler: Scheduler
    private let onChange: @Sendable (Int) -> Void

    /// - Parameters:
    ///   - mostWaiting: The maximum number of waiters. Further requests are refused at once.
    ///   - onChange: Called with the number of units in use.
    package init(
        _ limit: Int, mostWaiting: Int, scheduler: Scheduler, onChange: @escaping @Sendable (Int) -> Void = { _ in }
    ) {
        precondition(limit > 0, "A semaphore must have at least one unit.")
        self.limit = limit
        self.mostWaiting = mostWaiting
        self.scheduler = scheduler
        self.onChange = onChange
    }

    /// The number of units in use.
    package var used: Int { state.withLock { $0.used } }

    /// Takes free units. A request for more than the limit takes the limit.
    ///
    /// - Returns: Nil if there are not enough free units, or other requests are waiting.
    package func takeAtOnce(_ units: Int) -> Permit? {
        let units = min(units, limit)
        let used = state.withLock { state -> Int? in
            guard state.waiters.isEmpty, state.used + units <= limit else { return nil }
            state.used += units
            return state.used
        }
        guard let used else { return nil }
        onChange(used)
        return Permit(units, in: self)
    }

    /// Takes units, and waits until there are enough.
    ///
    /// - Returns: Nil if there were not enough in time, or too many requests are waiting.
    package func take(_ units: Int, within patience: Duration) async -> Permit? {
        if let place = takeAtOnce(units) { return place }
        let units = min(units, limit)
        let isTaken = await withCheckedContinuation { continuation in
            let number = enter(Waiter(units: units, continuation: continuation))
            guard let number else { return continuation.resume(returning: false) }
            scheduler.run(patience) { [weak self] in self?.leave(number) }
            // Units can have been released meanwhile.
            admitWaiters()
        }
        return isTaken ? Permit(units, in: self) : nil
    }

    private func enter(_ waiter: Waiter) -> Int? {
        state.withLock { state in
            guard state.waiters.count < mostWaiting else { return nil }
            defer { state.nextWaiter += 1 }
            state.waiters[state.nextWaiter] = waiter
            return state.nextWaiter
        }
    }

    private func leave(_ number: Int) {
        state.withLock { $0.waiters.removeValue(forKey: number) }?.continuation.resume(returning: false)
        // Other waiters may need fewer units.
        admitWaiters()
    }

    private func admitWaiters() {
        let (admitted, used) = state.withLock { state in
            var admitted: [Waiter] = []
            while state.firstWaiter < state.nextWaiter {
                if let waiter = state.waiters[state.firstWaiter] {
                    guard state.used + waiter.units <= limit else { break }
                    state.used += waiter.units
                    state.waiters[state.firstWaiter] = nil
                    admitted.append(waiter)
                }
                state.firstWaiter += 1
            }
            return (admitted, state.used)
        }
        guard !admitted.isEmpty else { return }
        onChange(used)
        for waiter in admitted { waiter.continuation.resume(returning: true) }
    }

    fileprivate func release(_ units: Int) {
        guard units > 0 else { return }
        let (used, isAwaited) = state.withLock { state in
            state.used -= units
            return (state.used, !state.waiters.isEmpty)
        }
        onChange(used)
        if isAwaited { admitWaiters() }
    }

    /// Units that are in use until they are released or the object is deallocated.
    package final class Permit: Sendable {
        private let units: Mutex<Int>
        private let semaphore: WeightedSemaphore

        fileprivate init(_ units: Int, in semaphore: WeightedSemaphore) {
            self.units = Mutex(units)
            self.semaphore = semaphore
        }

        /// Releases the units beyond this number.
        package func shrink(to fewer: Int) {
            let freed = units.withLock { units in
                let freed = max(0, units - fewer)
                units -= freed
                return freed
            }
            semaphore.release(freed)
        }

        package func release() { shrink(to: 0) }

        deinit { release() }
    }
}
