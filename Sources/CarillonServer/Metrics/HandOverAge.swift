import CarillonCore
import Synchronization

/// Measures for how long the oldest hand-over is known to wait. The store has no times of hand-overs.
///
/// Numbers of hand-overs ascend. A hand-over with the noted number or a lower one has therefore waited since the note. If the oldest has a
/// higher number, the hand-overs up to the noted one do not wait any more, and the higher number is noted.
final class HandOverAge: Sendable {
    private struct Note {
        var number: Int64
        var ticks: Int64
    }

    private let ticks: TickSource
    private let note = Mutex<Note?>(nil)

    init(ticks: TickSource) { self.ticks = ticks }

    /// Returns the seconds for which the oldest hand-over is known to wait.
    ///
    /// - Parameter first: Its number, as it was just read; nil if none waits.
    func seconds(ofFirst first: Int64?) -> Double {
        note.withLock { note in
            guard let first else {
                note = nil
                return 0
            }
            guard let noted = note, first <= noted.number else {
                note = Note(number: first, ticks: ticks.now())
                return 0
            }
            return Double(ticks.now() - noted.ticks) / 1e9
        }
    }
}
