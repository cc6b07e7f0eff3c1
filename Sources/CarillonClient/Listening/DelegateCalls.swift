/// The waiting calls of delegates, in order and within two limits: one for the number of events, and one for the bytes of their
/// content.
///
/// If a new event does not fit, the oldest progress is dropped, or else the oldest step. If neither waits, a new step is dropped
/// itself, and a lasting event replaces the oldest event. If the content of a new event does not fit, the oldest events with
/// content are dropped. An event that only the delegate has, such as the result of a request, is never dropped and counts towards
/// neither limit: the storage bounds the number of those events.
struct DelegateCalls<Event: StreamedEvent, Call: Sendable>: Sendable {
    private struct Entry: Sendable {
        let call: Call
        /// Nil for a call without an event, which is never dropped.
        let event: Event?
        let rank: EventRank
        let bytes: Int
        var isKept: Bool

        var isProgress: Bool { if case .progress = rank { true } else { false } }
    }

    enum Next {
        /// The number of events that were dropped since the last call.
        case missed(Int)
        case call(Call)
    }

    /// The most events that wait.
    static var limit: Int { 1000 }
    /// The most bytes of content of these events. One event that is larger is kept if no other content waits.
    static var byteLimit: Int { 16 << 20 }

    private var waiting: [Entry] = []
    /// The number and the bytes of the events that can be dropped.
    private(set) var count = 0
    private(set) var bytes = 0
    /// The number of events that were dropped since the last `next`.
    private var missed = 0

    /// Appends a call without an event.
    mutating func append(_ call: Call) {
        waiting.append(Entry(call: call, event: nil, rank: .lasting, bytes: 0, isKept: true))
    }

    /// Appends the call for an event.
    ///
    /// - Parameter isKept: Whether only the delegate has the event.
    /// - Returns: The events that are dropped.
    mutating func append(_ call: Call, for event: Event, isKept: Bool = false) -> [Event] {
        let entry = Entry(call: call, event: event, rank: event.rank, bytes: event.contentBytes, isKept: isKept)
        guard !isKept else {
            waiting.append(entry)
            return []
        }
        guard var dropped = makeRoom(for: entry) else { return [event] }
        if entry.bytes > 0 { dropped += makeRoom(bytes: entry.bytes) }
        waiting.append(entry)
        count += 1
        bytes += entry.bytes
        return dropped
    }

    /// Allows that kept events are dropped from now on, because another receiver has them too.
    /// - Returns: The events that are dropped.
    mutating func release(where isReleased: (Event) -> Bool) -> [Event] {
        var dropped: [Event] = []
        for place in waiting.indices where waiting[place].isKept {
            guard let event = waiting[place].event, isReleased(event) else { continue }
            waiting[place].isKept = false
            count += 1
            bytes += waiting[place].bytes
        }
        while count > Self.limit, let place = lesser ?? oldest { dropped += drop(at: place) }
        return dropped + makeRoom(bytes: 0)
    }

    /// Removes events that must not be reported any more. They are not counted as missed.
    mutating func remove(where isRemoved: (Event) -> Bool) -> [Event] {
        var removed: [Event] = []
        for place in waiting.indices.reversed() {
            guard let event = waiting[place].event, isRemoved(event) else { continue }
            take(at: place)
            removed.append(event)
        }
        return removed
    }

    /// Takes the next call. If events were dropped, their number comes first.
    mutating func next() -> Next? {
        if missed > 0 {
            defer { missed = 0 }
            return .missed(missed)
        }
        return waiting.isEmpty ? nil : .call(take(at: 0).call)
    }

    /// Returns nil if the entry itself does not fit.
    private mutating func makeRoom(for entry: Entry) -> [Event]? {
        guard count >= Self.limit else { return [] }
        let least = lesser
        if least == nil, entry.rank != .lasting {
            missed += 1
            return nil
        }
        guard let place = least ?? oldest else { return [] }
        return drop(at: place)
    }

    /// The place of the oldest progress, or else of the oldest step.
    private var lesser: Int? {
        let progress = waiting.firstIndex { !$0.isKept && $0.isProgress }
        return progress ?? waiting.firstIndex { !$0.isKept && $0.rank == .step }
    }

    /// The place of the oldest event that can be dropped.
    private var oldest: Int? { waiting.firstIndex { !$0.isKept } }

    private mutating func makeRoom(bytes new: Int) -> [Event] {
        var dropped: [Event] = []
        while bytes > 0, bytes + new > Self.byteLimit,
            let oldest = waiting.firstIndex(where: { !$0.isKept && $0.bytes > 0 })
        {
            dropped += drop(at: oldest)
        }
        return dropped
    }

    private mutating func drop(at place: Int) -> [Event] {
        missed += 1
        return take(at: place).event.map { [$0] } ?? []
    }

    @discardableResult private mutating func take(at place: Int) -> Entry {
        let entry = waiting.remove(at: place)
        if !entry.isKept {
            count -= 1
            bytes -= entry.bytes
        }
        return entry
    }
}
