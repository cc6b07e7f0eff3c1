/// The results that the app has not confirmed: which there are, and which of them wait for a delegate.
struct UnconfirmedResults {
    private var ids: Set<String> = []
    /// The results that delegates are going to be called with, or were called with.
    private(set) var notified: Set<String> = []
    /// The results that the app has, and whose deletion waits for the storage.
    private var deliveredIDs: Set<String> = []

    /// The results with which no delegate is called because the app named another user.
    private var postponed: Set<String> = []

    /// The results that were under way when the process ended.
    private var suspects: Set<String> = []

    /// The code of the app that a result is with.
    enum Holder: Hashable, Sendable {
        case delegate, reader
    }

    /// The results whose starts are stored, with those who have them.
    private var holders: [String: Set<Holder>] = [:]

    /// The results that the app has, and is not done with.
    var started: Set<String> { Set(holders.keys) }

    /// A delegate is called with a result, or a reader is given it. Returns whether its start must be stored: that of the first of them, for a
    /// result that is stored.
    mutating func begins(_ id: String, with holder: Holder) -> Bool {
        guard ids.contains(id) else { return false }
        let isFirst = holders[id] == nil
        holders[id, default: []].insert(holder)
        return isFirst
    }

    /// The app's code ended, and did not confirm the result. Returns whether the start must be taken back.
    mutating func released(_ id: String, by holder: Holder) -> Bool {
        guard holders[id]?.remove(holder) != nil, holders[id]?.isEmpty == true else { return false }
        holders[id] = nil
        return true
    }

    /// Returns the results whose starts are taken back.
    mutating func takeStarted() -> Set<String> {
        defer { holders = [:] }
        return started
    }

    /// A result was stored.
    ///
    /// - Parameters:
    ///   - isNotified: Whether a delegate is notified.
    ///   - isSuspect: Whether the result was under way when the process ended.
    mutating func kept(_ id: String, isNotified: Bool, isSuspect: Bool = false) {
        ids.insert(id)
        if isNotified { notified.insert(id) }
        if isSuspect { suspects.insert(id) }
    }

    /// Whether the result is not confirmed and not removed.
    func isThere(_ id: String) -> Bool { ids.contains(id) }

    /// Whether the result was under way when the process ended, and waits for its turn.
    func isSuspect(_ id: String) -> Bool { suspects.contains(id) }

    /// The result was confirmed or removed. Returns false for one that is not known.
    mutating func ended(_ id: String) -> Bool {
        notified.remove(id)
        postponed.remove(id)
        holders[id] = nil
        suspects.remove(id)
        return ids.remove(id) != nil
    }

    /// The app named another user before a delegate was called with the result. Returns false for a result that is not stored: a task has it.
    mutating func postpone(_ id: String) -> Bool {
        guard ids.contains(id) else { return false }
        postponed.insert(id)
        return true
    }

    /// No delegate was called with the result: a later run reports it again. Returns true if this run does, unless the device has another user
    /// then.
    mutating func missed(_ id: String) -> Bool {
        notified.remove(id)
        return postponed.remove(id) != nil
    }

    // MARK: Results that the app has

    /// The app has the result, which the storage may have as well.
    mutating func delivered(_ id: String) { deliveredIDs.insert(id) }

    /// The storage has the result no more.
    mutating func deleted(_ id: String) { deliveredIDs.remove(id) }

    /// Whether the app has the result, and must not be notified of it again.
    func isDelivered(_ id: String) -> Bool { deliveredIDs.contains(id) }
}
