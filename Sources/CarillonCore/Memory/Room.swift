import Synchronization

/// Room for a number of units that are used for a while, such as the bytes of answers. Who finds no room waits for a place, and
/// places are given in the order of requests.
package final class Room: Sendable {
    private struct Waiter {
        var units: Int
        var continuation: CheckedContinuation<Bool, Never>
    }

    private struct State {
        var used = 0
        var waiters: [Int: Waiter] = [:]
        /// The numbers of waiters ascend in the order of their requests.
        var firstWaiter = 0
        var nextWaiter = 0
    }

    private let state = Mutex(State())
    private let limit: Int
    private let mostWaiting: Int
    private let scheduler: Scheduler
    private let onChange: @Sendable (Int) -> Void

    /// - Parameters:
    ///   - mostWaiting: One more waiter is refused at once.
    ///   - onChange: Called with the units in use.
    package init(
        _ limit: Int, mostWaiting: Int, scheduler: Scheduler, onChange: @escaping @Sendable (Int) -> Void = { _ in }
    ) {
        precondition(limit > 0, "A room must have at least one place.")
        self.limit = limit
        self.mostWaiting = mostWaiting
        self.scheduler = scheduler
        self.onChange = onChange
    }

    /// Units in use.
    package var used: Int { state.withLock { $0.used } }

    /// Takes room that is free. A request for more than there is takes all of it.
    ///
    /// - Returns: Nil if there is not enough room, or other requests wait.
    package func takeAtOnce(_ units: Int) -> Place? {
        let units = min(units, limit)
        let used = state.withLock { state -> Int? in
            guard state.waiters.isEmpty, state.used + units <= limit else { return nil }
            state.used += units
            return state.used
        }
        guard let used else { return nil }
        onChange(used)
        return Place(units, in: self)
    }

    /// Takes room, and waits while there is not enough.
    ///
    /// - Returns: Nil if there was none in time, or too many wait.
    package func take(_ units: Int, within patience: Duration) async -> Place? {
        if let place = takeAtOnce(units) { return place }
        let units = min(units, limit)
        let isTaken = await withCheckedContinuation { continuation in
            let number = enter(Waiter(units: units, continuation: continuation))
            guard let number else { return continuation.resume(returning: false) }
            scheduler.run(patience) { [weak self] in self?.leave(number) }
            // Room may have been given back meanwhile.
            admitWaiters()
        }
        return isTaken ? Place(units, in: self) : nil
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
        // Others may be content with less.
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

    fileprivate func giveBack(_ units: Int) {
        guard units > 0 else { return }
        let (used, isAwaited) = state.withLock { state in
            state.used -= units
            return (state.used, !state.waiters.isEmpty)
        }
        onChange(used)
        if isAwaited { admitWaiters() }
    }

    /// Room that somebody has, until it is given back or forgotten.
    package final class Place: Sendable {
        private let units: Mutex<Int>
        private let room: Room

        fileprivate init(_ units: Int, in room: Room) {
            self.units = Mutex(units)
            self.room = room
        }

        /// Gives back what is more than this.
        package func shrink(to fewer: Int) {
            let freed = units.withLock { units in
                let freed = max(0, units - fewer)
                units -= freed
                return freed
            }
            room.giveBack(freed)
        }

        package func giveBack() { shrink(to: 0) }

        deinit { giveBack() }
    }
}
