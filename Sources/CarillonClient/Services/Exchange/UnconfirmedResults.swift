/// The results that the app has not confirmed, and those of them that wait for a delegate.
struct UnconfirmedResults {
    private var ids: Set<String> = []
    /// The results with which delegates will be called, or were called.
    private(set) var notified: Set<String> = []
    /// The results that the app has handled, and whose deletion waits for the storage.
    private var deliveredIDs: Set<String> = []

    /// The results with which no delegate is called because the app set another user.
    private var postponed: Set<String> = []

    /// The results that were being handled when the process ended.
    private var suspects: Set<String> = []

    /// The code of the app that handles a result.
    enum Recipient: Hashable, Sendable {
        case delegate, reader
    }

    /// The results whose starts are stored, with the code that handles them.
    private var recipients: [String: Set<Recipient>] = [:]

    /// The results that the app is handling.
    var started: Set<String> { Set(recipients.keys) }

    /// Records that a delegate is called with a result, or that a reader receives it. Returns whether a start must be stored:
    /// only for the first of them, and for a stored result.
    mutating func begins(_ id: String, with recipient: Recipient) -> Bool {
        guard ids.contains(id) else { return false }
        let isFirst = recipients[id] == nil
        recipients[id, default: []].insert(recipient)
        return isFirst
    }

    /// Records that the app's code ended without a confirmation of the result. Returns whether the start must be removed.
    mutating func released(_ id: String, by recipient: Recipient) -> Bool {
        guard recipients[id]?.remove(recipient) != nil, recipients[id]?.isEmpty == true else { return false }
        recipients[id] = nil
        return true
    }

    /// Removes all starts. Returns their results.
    mutating func takeStarted() -> Set<String> {
        defer { recipients = [:] }
        return started
    }

    /// Records that a result was stored.
    ///
    /// - Parameters:
    ///   - isNotified: Whether a delegate is notified.
    ///   - isSuspect: Whether the result was being handled when the process ended.
    mutating func kept(_ id: String, isNotified: Bool, isSuspect: Bool = false) {
        ids.insert(id)
        if isNotified { notified.insert(id) }
        if isSuspect { suspects.insert(id) }
    }

    /// Whether the result was neither confirmed nor removed.
    func contains(_ id: String) -> Bool { ids.contains(id) }

    /// Whether the result was being handled when the process ended, and waits for its turn.
    func isSuspect(_ id: String) -> Bool { suspects.contains(id) }

    /// Records that the result was confirmed or removed. Returns false if the result is not known.
    mutating func ended(_ id: String) -> Bool {
        notified.remove(id)
        postponed.remove(id)
        recipients[id] = nil
        suspects.remove(id)
        return ids.remove(id) != nil
    }

    /// Records that the app set another user before a delegate was called with the result. Returns false if the result is not
    /// stored, because a task receives it.
    mutating func postpone(_ id: String) -> Bool {
        guard ids.contains(id) else { return false }
        postponed.insert(id)
        return true
    }

    /// Records that no delegate was called with the result, which a later run reports again. Returns true if this run reports it,
    /// unless the device has another user then.
    mutating func missed(_ id: String) -> Bool {
        notified.remove(id)
        return postponed.remove(id) != nil
    }

    // MARK: Results that the app has handled

    /// Records that the app has handled the result, which may still be stored.
    mutating func delivered(_ id: String) { deliveredIDs.insert(id) }

    /// Records that the result is not stored any more.
    mutating func deleted(_ id: String) { deliveredIDs.remove(id) }

    /// Whether the app has handled the result, and must not be notified of it again.
    func isDelivered(_ id: String) -> Bool { deliveredIDs.contains(id) }
}
