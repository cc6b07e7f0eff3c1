package import CarillonCore

/// Opens the stores of tests, and has the functions for tests beyond the contract: old rows, damaged rows, counts of rows,
/// copies, and faults.
///
/// Each function of the row protocols is named by its effect. Only the maker of a store knows how the store does it.
package protocol StoreMaker: DeviceRows, FiringRows, InboxRows, ItemRows, PushRows, SubscriptionRows, UpdateRows {
    /// Opens the stores of servers that are started as a whole.
    var factory: any StoreFactory { get }

    // MARK: Opening and closing

    /// Returns an empty store. Its content can end with it.
    func open(_ settings: StoreSettings) async throws -> any Store
    /// Returns an empty store that can be opened again, copied and backed up.
    func openKept(_ settings: StoreSettings) async throws -> any Store
    /// Opens the store of a place, and makes it if there is none.
    func open(at place: String, _ settings: StoreSettings) async throws -> any Store
    /// Returns the place that a store is kept in; nil if its content ends with it.
    func place(of store: any Store) -> String?
    /// Closes a store, as a server does when it ends.
    func close(_ store: any Store) async throws
    /// Whether a place has a store that was closed, so that nothing is left to be done when it is opened.
    func isClosed(at place: String) throws -> Bool

    // MARK: Copies

    /// Copies the state of the store after a kill at this moment. Called while a commit waits (``onCommit(of:_:)``).
    func copy(_ store: any Store) throws -> StoreCopy
    /// Replaces the content of a place with a copy of the closed store of another place.
    func copy(_ place: String, to other: String) async throws
    /// Replaces the store in a directory with a copy of the closed store of another directory. Other files stay as they are.
    func replaceStore(in place: String, withStoreOf other: String) async throws
    /// Removes a closed store from a directory. Other files stay as they are.
    func removeStore(in place: String) async throws
    func backUp(_ store: any Store) async throws -> StoreCopy
    /// Opens a new store that is made of a backup. See ``StoreFactory``.
    func restore(_ backup: StoreCopy, holdsUpdates: Bool, at now: Timestamp, _ settings: StoreSettings) async throws
        -> RestoredStore

    // MARK: Faults

    /// Runs the work after each commit, before a change in the commit is answered, until it is nil.
    func onCommit(of store: any Store, _ work: (@Sendable () -> Void)?)
    /// Every change of the store fails with the fault, until it is nil.
    func refuseChanges(of store: any Store, with fault: StoreFault?)
    /// The store can grow no further.
    func fillDisk(of store: any Store) async throws
    func freeDisk(of store: any Store) async throws
    /// Every change of this kind fails, until it is allowed.
    func refuse(_ change: RefusedChange, in store: any Store) async throws
    func allow(_ change: RefusedChange, in store: any Store) async throws

    // MARK: Rows

    /// Returns the number of damages that a store finds in itself, apart from ``ServerStore/checkHealth()``.
    func countDamages(in store: any Store) async throws -> Int
    /// Returns the numbers that the store keeps of its rows and that differ from the rows, as texts. No change may be under way.
    func wrongCounters(in store: any Store) async throws -> [String]
    func count(_ rows: StoredRows, in store: any Store) async throws -> Int
    /// Every use of these rows fails, until they are readable again.
    func makeUnreadable(_ rows: StoredRows, in store: any Store) async throws
    func makeReadable(_ rows: StoredRows, in store: any Store) async throws
}

extension StoreMaker {
    package func open() async throws -> any Store { try await open(StoreSettings()) }
    package func openKept() async throws -> any Store { try await openKept(StoreSettings()) }
    package func openCopy(_ copy: StoreCopy) async throws -> any Store { try await open(at: copy.place, StoreSettings()) }

    /// Opens the files of a closed store.
    package func reopen(_ closed: any Store) async throws -> any Store {
        guard let place = place(of: closed) else { preconditionFailure("The store was not kept.") }
        return try await open(at: place, StoreSettings())
    }
}

/// A copy of a store, or a backup. Only its maker reads the place.
package struct StoreCopy: Sendable {
    package var place: String
    package init(place: String) { self.place = place }
}

package struct RestoredStore: Sendable {
    package var store: any Store
    package var updates: LiveUpdateCount

    package init(_ store: any Store, _ updates: LiveUpdateCount) { (self.store, self.updates) = (store, updates) }
}

package enum RefusedChange: String, Sendable {
    /// A change of an item that exists.
    case itemUpdate
    /// A new firing.
    case firing
    /// The note that the first firing of a watched item was delivered.
    case firstDelivery
}

/// The rows that tests count or damage.
package enum StoredRows: Sendable {
    case apps, accessKeys, registrations
    case devices, deviceProfiles, channels, watches, disconnectCallbacks
    case envelopes, sharedBodies, wakes, pushes, keptPushes
    case items, conditionShapes, subscriptions, watchedItems, handOvers
    case firings, throttledFirings
    case updates, bindings, completions, auditEntries
    case serviceProviders, serviceRequests
    case attachments
}
