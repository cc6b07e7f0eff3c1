/// The results of requests that the app has not confirmed.
struct ServiceResults {
    /// The recipients of a result.
    enum Audience {
        case all
        /// Readers of late replies received the result in this run, or can receive it.
        case delegates
    }

    var unconfirmed = UnconfirmedResults()
    /// The results that the app receives if the server refuses the user that the app named, by the id of their request.
    var heldBack: [String: Audience] = [:]
    /// The errors of requests whose result could not be stored, until the app confirms them. There is one for a request at most.
    private(set) var unstored: [KeptResult] = []
    /// The requests whose end is being stored.
    private var ending: Set<String> = []

    /// The end of a request is going to be stored. Returns false if it is being stored already.
    mutating func beginsEnding(_ id: String) -> Bool { ending.insert(id).inserted }

    mutating func ended(_ id: String) { ending.remove(id) }

    mutating func couldNotStore(_ result: KeptResult) { unstored.append(result) }

    /// Forgets a result that is not stored. Returns false if there is none.
    mutating func confirmUnstored(_ id: String) -> Bool {
        guard let place = unstored.firstIndex(where: { $0.id == id }) else { return false }
        unstored.remove(at: place)
        return true
    }

    /// The device has another user: the results of the former user are forgotten, except those whose end is being stored.
    mutating func removeAll() { (unconfirmed, heldBack, unstored) = (UnconfirmedResults(), [:], []) }
}
