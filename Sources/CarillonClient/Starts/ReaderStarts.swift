import ServiceLifecycle
import Synchronization

/// An entry whose starts are counted, and that the app receives as the reader of a stream or as a delegate.
protocol CountedEntry: Equatable, Sendable {
    var suspect: SuspectTurns.Entry { get }
}

typealias MessageStarts = ReaderStarts<BufferedMessage>
typealias FiringStarts = ReaderStarts<FiringQueue.Entry>

/// The code of the app that handles an entry.
enum StartHolder: Hashable, Sendable {
    case delegate, reader
}

/// The entries of one kind that the app received and has not finished handling. One start is stored for each entry, also if both a reader and
/// delegates handle it.
final class ReaderStarts<Entry: CountedEntry>: Sendable {
    private struct State {
        var entries: [SuspectTurns.Entry: Entry] = [:]
        var holders: [SuspectTurns.Entry: Set<StartHolder>] = [:]
        /// The client stopped: the process may end in an orderly way.
        var isStopped = false
    }

    private let state = Mutex(State())
    private let suspects: SuspectTurns

    init(_ suspects: SuspectTurns) { self.suspects = suspects }

    /// Waits until an entry that was under way when the process ended may be given to the app. Returns false when the task is cancelled, its
    /// service group shuts down, or the iteration is over.
    func hasTurn(_ entry: Entry, isOver: @Sendable () -> Bool) async -> Bool {
        while !suspects.begin(entry.suspect, at: .now) {
            do { try await Task.sleep(for: .milliseconds(10)) } catch { return false }
            if Task.isShuttingDownGracefully || isOver() { return false }
        }
        return true
    }

    /// The client begins to run.
    func resume() { state.withLock { $0.isStopped = false } }

    /// Notes that the app is given an entry. Returns false, and no start is stored, between the end of a run and the next run.
    func began(_ entry: Entry, by holder: StartHolder = .reader) -> Bool {
        state.withLock { state in
            guard !state.isStopped else { return false }
            state.entries[entry.suspect] = entry
            state.holders[entry.suspect, default: []].insert(holder)
            return true
        }
    }

    /// Whether the start of an entry was not taken back.
    func hasStarted(_ entry: Entry) -> Bool { state.withLock { $0.entries[entry.suspect] != nil } }

    func handled(_ entry: Entry) { _ = take(entry.suspect) }

    /// Returns the entry whose start must be taken back; nil if no start is stored.
    func take(_ suspect: SuspectTurns.Entry) -> Entry? {
        suspects.end(suspect)
        return state.withLock { state in
            state.holders[suspect] = nil
            return state.entries.removeValue(forKey: suspect)
        }
    }

    /// One holder no longer handles an entry. Returns the entry if no other holder handles it and its start must be taken back.
    func released(_ suspect: SuspectTurns.Entry, by holder: StartHolder) -> Entry? {
        let isHeld = state.withLock { state in
            state.holders[suspect]?.remove(holder)
            return state.holders[suspect]?.isEmpty == false
        }
        return isHeld ? nil : take(suspect)
    }

    /// The client stops. Returns the entries whose starts are to be taken back.
    func stop() -> [Entry] {
        let all = state.withLock { state in
            defer { (state.entries, state.holders) = ([:], [:]) }
            state.isStopped = true
            return Array(state.entries.values)
        }
        for entry in all { suspects.end(entry.suspect) }
        return all
    }
}
