import CarillonCore
import Synchronization

/// Measures the minimum waiting time of the oldest hand-over. The store does not contain times of hand-overs.
///
/// Numbers of hand-overs ascend. A hand-over with the recorded number or a lower one has therefore waited since the number was
/// recorded. If the oldest has a higher number, the hand-overs up to the recorded one no longer wait, and the higher number is
/// recorded.
final class HandOverAge: Sendable {
    private struct Note {
        var number: Int64
        var ticks: Int64
    }

    private let ticks: TickSource
    private let note = Mutex<Note?>(nil)

    init(ticks: TickSource) { self.ticks = ticks }

    /// Returns the minimum waiting time of the oldest hand-over, in seconds.
    ///
    /// - Parameter first: The number of the oldest hand-over, which was just read; nil if none waits.
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
