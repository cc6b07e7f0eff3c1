import ServiceLifecycle
import Synchronization

/// An entry whose starts are counted, and that the app receives as the reader of a stream or as a delegate.
protocol CountedEntry: Equatable, Sendable {
    var suspect: SuspectTurns.Entry { get }
}

typealias MessageStarts = ReaderStarts<BufferedMessage>
typealias FiringStarts = ReaderStarts<FiringQueue.Entry>

/// The code of the app that handles an entry.
enum EntryRecipient: Hashable, Sendable {
    case delegate, reader
}

/// The entries of one kind that the app received and has not finished handling. One start is stored for each entry, also if both a reader and
/// delegates handle it.
final class ReaderStarts<Entry: CountedEntry>: Sendable {
    private struct State {
        var entries: [SuspectTurns.Entry: Entry] = [:]
        var recipients: [SuspectTurns.Entry: Set<EntryRecipient>] = [:]
        /// Whether the client stopped. An end of the process is not counted then.
        var isStopped = false
    }

    private let state = Mutex(State())
    private let suspects: SuspectTurns

    init(_ suspects: SuspectTurns) { self.suspects = suspects }

    /// Waits until the app can receive an entry that was being handled when the process ended. Returns false if the task is
    /// cancelled, its service group shuts down, or the iteration is over.
    func waitForTurn(_ entry: Entry, isOver: @Sendable () -> Bool) async -> Bool {
        while !suspects.begin(entry.suspect, at: .now) {
            do { try await Task.sleep(for: .milliseconds(10)) } catch { return false }
            if Task.isShuttingDownGracefully || isOver() { return false }
        }
        return true
    }

    /// Records that the client begins to run.
    func resume() { state.withLock { $0.isStopped = false } }

    /// Records that the app receives an entry. Returns false, and no start is stored, between the end of a run and the next run.
    func began(_ entry: Entry, by recipient: EntryRecipient = .reader) -> Bool {
        state.withLock { state in
            guard !state.isStopped else { return false }
            state.entries[entry.suspect] = entry
            state.recipients[entry.suspect, default: []].insert(recipient)
            return true
        }
    }

    /// Whether an entry has a start that was not removed.
    func hasStarted(_ entry: Entry) -> Bool { state.withLock { $0.entries[entry.suspect] != nil } }

    func handled(_ entry: Entry) { _ = take(entry.suspect) }

    /// Returns the entry whose start must be removed; nil if no start is stored.
    func take(_ suspect: SuspectTurns.Entry) -> Entry? {
        suspects.end(suspect)
        return state.withLock { state in
            state.recipients[suspect] = nil
            return state.entries.removeValue(forKey: suspect)
        }
    }

    /// Records that one recipient no longer handles an entry. Returns the entry if no other recipient handles it, so that its
    /// start must be removed.
    func released(_ suspect: SuspectTurns.Entry, by recipient: EntryRecipient) -> Entry? {
        let hasRecipient = state.withLock { state in
            state.recipients[suspect]?.remove(recipient)
            return state.recipients[suspect]?.isEmpty == false
        }
        return hasRecipient ? nil : take(suspect)
    }

    /// Records that the client stops. Returns the entries whose starts must be removed.
    func stop() -> [Entry] {
        let all = state.withLock { state in
            defer { (state.entries, state.recipients) = ([:], [:]) }
            state.isStopped = true
            return Array(state.entries.values)
        }
        for entry in all { suspects.end(entry.suspect) }
        return all
    }
}
