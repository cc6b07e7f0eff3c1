/// The events that wait for one iteration, in order and within three limits: one for the number of transfers with progress, one
/// for the number of all other events, and one for the bytes of their content.
///
/// Only the newest progress of each transfer waits. If a new progress does not fit, the oldest progress is dropped. If another
/// event does not fit, the oldest step is dropped. If no step waits, a new step is dropped itself, and a lasting event replaces
/// the oldest event. If the content of a new event does not fit, the oldest events with content are dropped. The newest event is
/// always kept, even if it is larger than the limit.
struct EventBuffer<Event: StreamedEvent> {
    private struct Entry {
        let event: Event
        let rank: EventRank
        let bytes: Int

        var isProgress: Bool { if case .progress = rank { true } else { false } }
    }

    /// The most events other than progress that wait.
    static var limit: Int { 100 }
    /// The most transfers whose progress waits.
    static var transferLimit: Int { 100 }
    /// The most bytes of content of the events that wait.
    static var byteLimit: Int { 16 << 20 }

    private var waiting: [Entry] = []
    private var progressCount = 0
    /// The bytes of content of the events that wait.
    private(set) var bytes = 0
    /// The number of events that were dropped since the last `next`.
    private var missed = 0

    var count: Int { waiting.count }

    /// Returns the events that are dropped or replaced, so that the caller can release them outside of its lock.
    mutating func append(_ event: Event) -> [Event] {
        let entry = Entry(event: event, rank: event.rank, bytes: event.contentBytes)
        return entry.isProgress ? append(progress: entry) : append(other: entry)
    }

    private mutating func append(progress entry: Entry) -> [Event] {
        var removed: [Event] = []
        if let older = waiting.firstIndex(where: { $0.rank == entry.rank }) {
            removed.append(remove(at: older))
        } else if progressCount >= Self.transferLimit, let oldest = waiting.firstIndex(where: \.isProgress) {
            missed += 1
            removed.append(remove(at: oldest))
        }
        waiting.append(entry)
        progressCount += 1
        return removed
    }

    private mutating func append(other entry: Entry) -> [Event] {
        var removed: [Event] = []
        if waiting.count - progressCount >= Self.limit {
            missed += 1
            let step = waiting.firstIndex { $0.rank == .step }
            if step == nil, entry.rank == .step { return [entry.event] }
            if let place = step ?? waiting.firstIndex(where: { !$0.isProgress }) { removed.append(remove(at: place)) }
        }
        while entry.bytes > 0, bytes + entry.bytes > Self.byteLimit,
            let oldest = waiting.firstIndex(where: { $0.bytes > 0 })
        {
            missed += 1
            removed.append(remove(at: oldest))
        }
        bytes += entry.bytes
        waiting.append(entry)
        return removed
    }

    /// Takes the next event. If events were dropped, their number comes first.
    mutating func next() -> Event? {
        if missed > 0 {
            defer { missed = 0 }
            return Event.missed(missed)
        }
        return waiting.isEmpty ? nil : remove(at: 0)
    }

    /// Removes events that listeners must not receive any more. They do not count as missed.
    mutating func remove(where isRemoved: (Event) -> Bool) -> [Event] {
        var removed: [Event] = []
        for place in waiting.indices.reversed() where isRemoved(waiting[place].event) {
            removed.append(remove(at: place))
        }
        return removed
    }

    private mutating func remove(at place: Int) -> Event {
        let entry = waiting.remove(at: place)
        if entry.isProgress { progressCount -= 1 }
        bytes -= entry.bytes
        return entry.event
    }
}
