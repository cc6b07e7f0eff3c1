/// The results that the app has not confirmed: which there are, and which of them wait for a delegate.
struct UnconfirmedResults {
    private var ids: Set<String> = []
    /// The results that delegates are going to be called with, or were called with.
    private(set) var told: Set<String> = []
    /// The results that the app has, and whose deletion waits for the storage.
    private var deliveredIDs: Set<String> = []

    /// The results with which a delegate was called that did not return.
    private(set) var called: Set<String> = []

    /// A delegate is called with a result. Returns false for a result that is not stored.
    mutating func isCalled(with id: String) -> Bool {
        guard ids.contains(id) else { return false }
        called.insert(id)
        return true
    }

    /// Returns the results with which a delegate was called that did not return, whose starts are taken back.
    mutating func takeCalled() -> Set<String> {
        defer { called = [] }
        return called
    }

    /// A result was stored.
    ///
    /// - Parameter isTold: Whether a delegate is told.
    mutating func kept(_ id: String, isTold: Bool) {
        ids.insert(id)
        if isTold { told.insert(id) }
    }

    /// The result was confirmed or removed. Returns false for one that is not known.
    mutating func ended(_ id: String) -> Bool {
        told.remove(id)
        called.remove(id)
        return ids.remove(id) != nil
    }

    /// No delegate was called with the result: a later run tells it again.
    mutating func missed(_ id: String) { told.remove(id) }

    // MARK: Results that the app has

    /// The app has the result, which the storage may have as well.
    mutating func delivered(_ id: String) { deliveredIDs.insert(id) }

    /// The storage has the result no more.
    mutating func deleted(_ id: String) { deliveredIDs.remove(id) }

    /// Whether the app has the result, and must not be told it again.
    func isDelivered(_ id: String) -> Bool { deliveredIDs.contains(id) }
}
