import Synchronization

/// Starts entries that were under way when the process ended one after the other: so the entry that ended it is found, and entries that ran beside
/// it are not counted with it again.
final class SuspectTurns: Sendable {
    private struct Turn {
        var number: Int64
        var since: ContinuousClock.Instant
    }

    /// After so long the next entry is started beside the present one, so that a slow entry does not stop the others.
    static let longest = Duration.seconds(30)

    private let present = Mutex<Turn?>(nil)

    /// Returns false while another entry has its turn.
    func begin(_ number: Int64, at now: ContinuousClock.Instant) -> Bool {
        present.withLock { present in
            guard let turn = present else {
                present = Turn(number: number, since: now)
                return true
            }
            if turn.number == number { return true }
            guard turn.since.duration(to: now) >= Self.longest else { return false }
            present = Turn(number: number, since: now)
            return true
        }
    }

    func end(_ number: Int64) {
        present.withLock { present in
            if present?.number == number { present = nil }
        }
    }

    /// Waits for the turn of an entry.
    ///
    /// - Throws: `CancellationError`.
    func wait(for number: Int64) async throws {
        while !begin(number, at: .now) { try await Task.sleep(for: .milliseconds(10)) }
    }
}
