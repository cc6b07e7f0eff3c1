import CarillonWire
import Synchronization

/// What happened on one channel and was not yet taken by the app, in order; and who is taking it.
///
/// An entry stays until the app is done with it, so that an iteration that breaks off loses nothing. Messages are
/// bounded by the server's window; of changes, only the newest are kept, because the channel's state tells the rest.
final class ChannelInbox: Sendable {
    enum Entry: Equatable, Sendable {
        case change(ChannelMachine.Action)
        case message(NotificationFrame)

        var isChange: Bool { if case .change = self { true } else { false } }
    }

    struct Numbered: Sendable {
        let number: UInt64
        let entry: Entry
    }

    /// How many changes wait at most; the oldest gives way.
    static let changesLimit = 64

    private struct State {
        var entries: [Numbered] = []
        var lastNumber: UInt64 = 0
        /// The iteration that holds the inbox.
        var holder: UInt64?
        var lastHolder: UInt64 = 0
        var waiter: CheckedContinuation<Numbered?, Never>?
        /// Counts the ends of the client's runs; an iteration ends with the run that it began in, or before.
        var run: UInt64 = 0
    }

    private let state = Mutex(State())

    func append(_ entry: Entry) {
        let (waiter, first) = state.withLock { state -> (CheckedContinuation<Numbered?, Never>?, Numbered?) in
            state.lastNumber += 1
            state.entries.append(Numbered(number: state.lastNumber, entry: entry))
            if entry.isChange, state.entries.count(where: \.entry.isChange) > Self.changesLimit,
                let oldest = state.entries.firstIndex(where: \.entry.isChange)
            {
                state.entries.remove(at: oldest)
            }
            return (state.waiter.take(), state.entries.first)
        }
        waiter?.resume(returning: first)
    }

    /// The app is done with an entry.
    func remove(_ number: UInt64) {
        state.withLock { $0.entries.removeAll { $0.number == number } }
    }

    /// The app answered a message, maybe before its turn.
    func remove(messageID: String) {
        state.withLock { state in
            state.entries.removeAll { numbered in
                if case .message(let message) = numbered.entry { message.version == messageID } else { false }
            }
        }
    }

    /// The number of the present run, for an iteration that begins.
    var run: UInt64 { state.withLock { $0.run } }

    /// Takes the inbox for one iteration; nil when another holds it.
    func claim() -> UInt64? {
        state.withLock { state in
            guard state.holder == nil else { return nil }
            state.lastHolder += 1
            state.holder = state.lastHolder
            return state.lastHolder
        }
    }

    func release(_ holder: UInt64) {
        state.withLock { state in
            if state.holder == holder { state.holder = nil }
        }
    }

    /// The client stopped: iterations that began before end.
    func endRun() {
        let waiter = state.withLock { state in
            state.run += 1
            return state.waiter.take()
        }
        waiter?.resume(returning: nil)
    }

    /// Waits for the first entry; nil when the run ended or the task was cancelled. Only the holder may ask.
    func first(inRun run: UInt64) async -> Numbered? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                enum Answer {
                    case now(Numbered?)
                    case later
                }
                let answer = state.withLock { state -> Answer in
                    // A second waiter can only come from a copy of the iterator.
                    if state.run != run || state.waiter != nil || Task.isCancelled { return .now(nil) }
                    if let first = state.entries.first { return .now(first) }
                    state.waiter = continuation
                    return .later
                }
                if case .now(let first) = answer { continuation.resume(returning: first) }
            }
        } onCancel: {
            state.withLock { $0.waiter.take() }?.resume(returning: nil)
        }
    }
}
