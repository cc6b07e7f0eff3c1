package import CarillonCore

/// Rows of updates, of bindings, and of completions, which are the results of updates at bindings.
package protocol UpdateRows: Sendable {
    // MARK: Updates

    /// Returns all updates in the order of their serial numbers.
    func updates(in store: any Store) async throws -> [UpdateSerial]
    func countLiveUpdates(in store: any Store) async throws -> Int
    /// Returns how many updates have devices left to wake.
    func countWakingUpdates(in store: any Store) async throws -> Int
    /// Returns how many updates let a device fetch everything.
    func countResyncs(in store: any Store) async throws -> Int
    /// Returns the updates that are noted as ended with unfinished completions.
    func staleUpdates(in store: any Store) async throws -> [UpdateSerial]
    /// Pauses all live updates, without the other effects of a restoration.
    func pauseUpdates(in store: any Store) async throws
    /// Makes ``UpdateStore/unfinishedOfEnded(in:limit:)`` not find the completions of an ended update.
    func hideUnfinished(of update: UpdateSerial, in store: any Store) async throws

    // MARK: Bindings

    func hasBinding(ofProfile profile: String, in store: any Store) async throws -> Bool
    /// Returns how many bindings are noted as ended with unfinished completions.
    func countStaleBindings(in store: any Store) async throws -> Int
    /// Returns how many bindings have a place, or the time of one.
    func countLocatedBindings(in store: any Store) async throws -> Int
    /// Returns how many bindings have parameters whose text contains this.
    func countBindings(withParameters text: String, in store: any Store) async throws -> Int
    /// The same of their places.
    func countBindings(withPlaces text: String, in store: any Store) async throws -> Int

    // MARK: Completions

    /// Adds a waiting completion of an update, or of all if it is nil.
    func addUnfinished(
        of update: UpdateSerial?, _ binding: BindingSerial, entry: Int, orderKey: String?, in store: any Store
    ) async throws
    /// Sets the completions of an update to reported and due, without the other effects of a report.
    func report(_ update: UpdateSerial, in store: any Store) async throws
    /// Sets all completions to received and due.
    func makeReceivedDue(in store: any Store) async throws
    /// Sets the time at which each completion is due.
    func setDueTimes(_ moment: Timestamp, in store: any Store) async throws
    /// Returns when each completion is due that is due at some time.
    func dueTimes(in store: any Store) async throws -> [Timestamp]
    /// Returns the states of the completions whose device has left the audience, as the numbers in the store.
    func statesOfLeft(in store: any Store) async throws -> [Int]
    /// Returns how many completions have this reason.
    func countCompletions(because reason: String, in store: any Store) async throws -> Int
    /// Returns the size of each completion's reason in bytes.
    func reasonSizes(in store: any Store) async throws -> [Int]
    /// Returns the largest number of attempts of a completion.
    func mostAttempts(in store: any Store) async throws -> Int

    // MARK: Forbidden states

    /// Returns how many completions wait for another attempt and are due.
    func countDueAgain(in store: any Store) async throws -> Int
    /// Returns how many envelopes of updates have no completion that waits.
    func countOrphanedEnvelopes(in store: any Store) async throws -> Int
    /// Returns how many live updates a binding was compared with and belongs to the audience of, by its region, without having a
    /// completion.
    func countMissingCompletions(in store: any Store) async throws -> Int
}
