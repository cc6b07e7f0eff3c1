package import CarillonWire

/// What belongs to the server itself. Methods that write are atomic and durable, as ``Store`` describes.
package protocol ServerStore: Sendable {
    /// Returns the id of this server. The first call stores the id that it proposes, which stays the same for as long as the store lives, also
    /// after a restoration. Concurrent first calls return the same id, which one of them proposed.
    func serverID(proposing proposed: ServerID) async throws -> ServerID
    /// Returns the number of this past. The first call stores the number that it proposes, and so does the first call in a store that was
    /// restored from a backup. Concurrent first calls return the same number, which one of them proposed.
    func history(proposing proposed: Int64) async throws -> Int64
    /// Returns an epoch that no call returned before, and that is later than every place that is stored (``PositionSource``). It is on disk
    /// when it is returned; calls at once return different epochs.
    func claimEpoch() async throws -> Int64
    /// Returns the counter of seconds for which the server was in service, as it was written last; 0 at first. The store writes its value
    /// into each row that is removed for good after a time (``RetentionCutoff``).
    func servedSeconds() async throws -> Int64
    /// Writes the counter, unless it is greater already.
    func noteServed(_ seconds: Int64) async throws
    /// Returns normally if the store can be read and can be trusted. Damage that a call met is remembered until the store is opened again.
    ///
    /// - Throws: ``StoreFault``.
    func checkHealth() async throws
    /// Returns normally if changes can be written: no change failed since the last check that succeeded, or a change that is tried now
    /// succeeds.
    ///
    /// - Throws: ``StoreFault``.
    func checkWrites() async throws
    /// How long the oldest change has waited that is not on disk; zero if there is none.
    var oldestChangeWait: Duration { get }
    /// How long the present commit has taken. If there is none, how long the oldest change has waited for one; zero without a change.
    var commitTime: Duration { get }
}

/// Bodies that many envelopes point to (``Envelope/Content/shared``).
///
/// Both methods are one transaction each, and throw ``StoreFault`` if the store cannot be written; then nothing is changed.
package protocol ContentStore: Sendable {
    /// Keeps a body until it is released and the last envelope that points to it has left. Each call has an identifier of its own, also for
    /// equal bodies.
    func addContent(_ body: [UInt8]) async throws -> SharedContentID
    /// Notes that no further envelope will point to a body; a later append that does may fail. A second call changes nothing.
    func releaseContent(_ id: SharedContentID) async throws
}

/// Everything that Carillon keeps.
///
/// What holds for each method, unless its comment says otherwise:
///
/// - A method that writes is one transaction. Its change is made completely or not at all, and is on disk when the method returns. What
///   it checks, it checks in that transaction.
/// - Changes take effect one after another. A call that begins after a change was returned sees the change; a call beside it sees all of the
///   change or nothing. A read sees the store as it was at one moment.
/// - Methods throw ``StoreFault``. A method that writes has changed nothing then. An outcome that the caller must expect, such as a
///   limit or a missing row, is a value.
/// - No method takes a function, so no code of the caller runs inside a transaction. A caller reads, decides, and writes. If what it decided
///   on may have changed meanwhile, the method that writes takes that as well, and writes nothing if it is outdated.
/// - Cases for each method are in `Tests/StoreConformance`.
package typealias Store = AppDocumentStore & AppStore & AttachmentRecordStore & FencedStore & HomeStore & KeyRingStore
    & KeyStore & NodeStore & ServerStore

/// What a home reads and writes, by a handle of its own (``FencedStore/home(_:)``).
package typealias HomeStore = ChannelStore & ContentStore & DeletionStore & DeviceStore & HandOverStore & InboxStore
    & LeasedWorkStore
    & PushStore & ServiceStore & ShardStore & SubscriptionStore & UpdateStore & UserStore & WatchStore

/// Returns handles of the store for homes.
package protocol FencedStore: Sendable {
    /// Returns the handle of the home with this fence. Each method through the handle does what the store's does, as long as the
    /// incarnation of the fence was added and not removed. After that, a write changes nothing and throws a ``StoreFault`` of the kind
    /// `fenced`. The check and the write are one change: no other call sees the write of a home whose removal it saw. Reads are not
    /// refused.
    func home(_ fence: HomeFence) -> any HomeStore
}
