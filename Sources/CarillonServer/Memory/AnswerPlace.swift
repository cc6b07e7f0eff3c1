import CarillonCore
import Synchronization

/// The room of one answer, until its client has taken it or its connection has ended.
final class AnswerPlace: Sendable {
    private let place: Room.Place
    private let work = Mutex<(@Sendable () -> Void)?>(nil)

    init(_ place: Room.Place) { self.place = place }

    /// The answer turned out to take no more than this.
    func shrink(to bytes: Int) { place.shrink(to: bytes) }

    /// Calls this once, when the room is given back.
    func onGiveBack(_ work: @escaping @Sendable () -> Void) { self.work.withLock { $0 = work } }

    func giveBack() {
        place.giveBack()
        let work = work.withLock { work in
            defer { work = nil }
            return work
        }
        work?()
    }

    deinit { giveBack() }
}
