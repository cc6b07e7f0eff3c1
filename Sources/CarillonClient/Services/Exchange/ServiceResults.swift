/// The results of requests that the app has not confirmed.
struct ServiceResults {
    /// The recipients of a result.
    enum Audience {
        case all
        /// Only delegates: readers of late replies received the result in this run, or can receive it.
        case delegates
    }

    var unconfirmed = UnconfirmedResults()
    /// The results that are delivered to the app if the server rejects the user that the app set, by the id of their request.
    var deferred: [String: Audience] = [:]
    /// The errors of requests whose result could not be stored, until the app confirms them. A request has up to one.
    private(set) var unstored: [KeptResult] = []
    /// The requests whose end is being stored.
    private var ending: Set<String> = []

    /// Records that the end of a request is being stored. Returns false if it is being stored already.
    mutating func beginsEnding(_ id: String) -> Bool { ending.insert(id).inserted }

    mutating func ended(_ id: String) { ending.remove(id) }

    mutating func couldNotStore(_ result: KeptResult) { unstored.append(result) }

    /// Removes a result that is not stored. Returns false if the request has no such result.
    mutating func confirmUnstored(_ id: String) -> Bool {
        guard let place = unstored.firstIndex(where: { $0.id == id }) else { return false }
        unstored.remove(at: place)
        return true
    }

    /// Removes the results of the former user, because the device has another user. Requests whose end is being stored stay.
    mutating func removeAll() { (unconfirmed, deferred, unstored) = (UnconfirmedResults(), [:], []) }
}
