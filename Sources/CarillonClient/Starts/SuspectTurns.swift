import Synchronization

/// Starts the entries that were being handled when the process ended, one after the other. In this way the entry that ends the
/// process is found, and other entries are not counted with it again.
///
/// A client has one instance for entries of all kinds.
final class SuspectTurns: Sendable {
    /// An entry, with its number in the store or its id.
    enum Entry: Hashable, Sendable {
        case message(Int64)
        case update(Int64)
        case request(Int64)
        /// A result of a request, by the id of the request.
        case result(String)
        case firing(String)
    }

    private struct Turn {
        var entry: Entry
        var since: ContinuousClock.Instant
    }

    /// After this time the next entry is started beside the present one, so that a slow entry does not stop the others.
    static let longest = Duration.seconds(30)

    private let present = Mutex<Turn?>(nil)

    /// Begins the turn of an entry. Returns false while another entry has its turn.
    func begin(_ entry: Entry, at now: ContinuousClock.Instant) -> Bool {
        present.withLock { present in
            guard let turn = present else {
                present = Turn(entry: entry, since: now)
                return true
            }
            if turn.entry == entry { return true }
            guard turn.since.duration(to: now) >= Self.longest else { return false }
            present = Turn(entry: entry, since: now)
            return true
        }
    }

    func end(_ entry: Entry) {
        present.withLock { present in
            if present?.entry == entry { present = nil }
        }
    }

    /// Waits for the turn of an entry.
    ///
    /// - Throws: `CancellationError`.
    func wait(for entry: Entry) async throws {
        while !begin(entry, at: .now) { try await Task.sleep(for: .milliseconds(10)) }
    }
}
