import ServiceLifecycle
import Synchronization

/// An entry whose starts are counted, and that is given to the reader of a stream.
protocol CountedEntry: Equatable, Sendable {
    var suspect: SuspectTurns.Entry { get }
}

typealias MessageStarts = ReaderStarts<BufferedMessage>
typealias FiringStarts = ReaderStarts<FiringQueue.Entry>

/// The entries of one kind that the readers of the app were given and are not done with, for each of which a start is stored.
final class ReaderStarts<Entry: CountedEntry>: Sendable {
    private struct State {
        var entries: [SuspectTurns.Entry: Entry] = [:]
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
    func began(_ entry: Entry) -> Bool {
        state.withLock { state in
            guard !state.isStopped else { return false }
            state.entries[entry.suspect] = entry
            return true
        }
    }

    /// Whether the start of an entry was not taken back.
    func hasStarted(_ entry: Entry) -> Bool { state.withLock { $0.entries[entry.suspect] != nil } }

    func handled(_ entry: Entry) { _ = take(entry.suspect) }

    /// Returns the entry whose start must be taken back; nil if no start is stored.
    func take(_ suspect: SuspectTurns.Entry) -> Entry? {
        suspects.end(suspect)
        return state.withLock { $0.entries.removeValue(forKey: suspect) }
    }

    /// The client stops. Returns the entries whose starts are to be taken back.
    func stop() -> [Entry] {
        let all = state.withLock { state in
            defer { state.entries = [:] }
            state.isStopped = true
            return Array(state.entries.values)
        }
        for entry in all { suspects.end(entry.suspect) }
        return all
    }
}
