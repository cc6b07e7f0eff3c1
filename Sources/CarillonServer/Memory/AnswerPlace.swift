import CarillonCore
import Synchronization

/// The room of one answer, until its client has taken it or its connection has ended.
final class AnswerPlace: Sendable {
    private struct State {
        var bytes: Int
        var work: [@Sendable () -> Void] = []
    }

    private let place: Room.Place
    private let all: Int
    private let state: Mutex<State>
    private let onShrink: @Sendable (Int) -> Void

    /// - Parameter onShrink: Called with the bytes that are not needed any more.
    init(_ place: Room.Place, bytes: Int, onShrink: @escaping @Sendable (Int) -> Void) {
        self.place = place
        all = bytes
        state = Mutex(State(bytes: bytes))
        self.onShrink = onShrink
    }

    /// The answer takes no more than this.
    func shrink(to bytes: Int) {
        place.shrink(to: bytes)
        let freed = state.withLock { state in
            let freed = max(0, state.bytes - bytes)
            state.bytes -= freed
            return freed
        }
        if freed > 0 { onShrink(freed) }
    }

    /// Calls this once, when the room is given back.
    func onGiveBack(_ work: @escaping @Sendable () -> Void) { state.withLock { $0.work.append(work) } }

    func giveBack() {
        shrink(to: 0)
        let work = state.withLock { state in
            defer { state.work = [] }
            return state.work
        }
        for work in work { work() }
    }

    deinit {
        giveBack()
        FreedMemory.add(all)
    }
}
