import CarillonCore
import Synchronization

/// The reserved memory of one answer, until its client has received the answer or its connection has ended.
final class AnswerReservation: Sendable {
    private struct State {
        var bytes: Int
        var work: [@Sendable () -> Void] = []
    }

    private let place: WeightedSemaphore.Permit
    private let all: Int
    private let state: Mutex<State>
    private let onShrink: @Sendable (Int) -> Void

    /// - Parameter onShrink: Called with the number of bytes that are no longer needed.
    init(_ place: WeightedSemaphore.Permit, bytes: Int, onShrink: @escaping @Sendable (Int) -> Void) {
        self.place = place
        all = bytes
        state = Mutex(State(bytes: bytes))
        self.onShrink = onShrink
    }

    /// Reduces the reservation to the actual size of the answer.
    func shrink(to bytes: Int) {
        place.shrink(to: bytes)
        let freed = state.withLock { state in
            let freed = max(0, state.bytes - bytes)
            state.bytes -= freed
            return freed
        }
        if freed > 0 { onShrink(freed) }
    }

    /// Sets a function that is called once, when the memory is released.
    func onRelease(_ work: @escaping @Sendable () -> Void) { state.withLock { $0.work.append(work) } }

    func release() {
        shrink(to: 0)
        let work = state.withLock { state in
            defer { state.work = [] }
            return state.work
        }
        for work in work { work() }
    }

    deinit {
        release()
        FreedMemory.add(all)
    }
}
