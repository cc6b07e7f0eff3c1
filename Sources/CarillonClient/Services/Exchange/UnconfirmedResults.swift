/// The results that the app has not confirmed: which there are, and which of them a delegate is being told.
struct UnconfirmedResults {
    private var ids: Set<String> = []
    /// The results that were passed to a delegate that did not return. They must not be removed to make room.
    private(set) var told: Set<String> = []

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
}
