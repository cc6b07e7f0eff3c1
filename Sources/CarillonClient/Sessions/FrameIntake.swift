import Synchronization

/// Counts the frames of one connection that were read and are not stored yet, so that reading waits for the store and not
/// the store for each read.
final class FrameIntake: Sendable {
    static let limit = 128

    private struct State {
        var underWay = 0
        var waiter: (room: Int, continuation: CheckedContinuation<Void, Never>)?
        var fault: PushError?
    }

    private let state = Mutex(State())

    /// Why the connection is closed by this side; nil when a frame is not the reason.
    var fault: PushError? { state.withLock { $0.fault } }

    func ended(by fault: PushError) { state.withLock { $0.fault = fault } }

    /// Waits until there is room for one more, and takes it. One task enters.
    func enter() async {
        await wait(until: Self.limit - 1)
        state.withLock { $0.underWay += 1 }
    }

    func leave() {
        let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
            state.underWay -= 1
            guard let waiter = state.waiter, state.underWay <= waiter.room else { return nil }
            state.waiter = nil
            return waiter.continuation
        }
        waiter?.resume()
    }

    /// Waits until everything that entered has left. The task that enters calls it.
    func drained() async { await wait(until: 0) }

    private func wait(until room: Int) async {
        await withCheckedContinuation { continuation in
            let isThere = state.withLock { state in
                if state.underWay <= room { return true }
                state.waiter = (room, continuation)
                return false
            }
            if isThere { continuation.resume() }
        }
    }
}
