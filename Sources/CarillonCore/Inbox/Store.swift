package import CarillonWire

/// What belongs to the server itself.
///
/// Each change is one transaction. Every method that throws throws ``StoreFault``; then nothing is changed.
package protocol ServerStore: Sendable {
    /// Returns the identity of this server: made at the first call, and the same for as long as the store lives, wherever it is. Concurrent
    /// first calls return one identity.
    ///
    /// - Parameter make: Called inside the transaction, which may run again: it must only compute.
    func serverID(orMake make: @escaping @Sendable () -> ServerID) async throws -> ServerID
    /// Returns the number of this store's past: made at the first call as the identity is, and another one in a store that was restored from a
    /// backup.
    func history(orMake make: @escaping @Sendable () -> Int64) async throws -> Int64
    /// Returns an epoch that no home had before, and later than every position that is stored (``PositionSource``). Each of several
    /// concurrent calls returns another one.
    func claimEpoch() async throws -> Int64
    /// Returns the counter of seconds for which the server was in service, as it was written last; 0 before. The store writes its value
    /// into each row that is removed for good after a time (``RetentionCutoff``).
    func servedSeconds() async throws -> Int64
    /// Writes the counter, which never goes back: a smaller number changes nothing.
    func noteServed(_ seconds: Int64) async throws
    /// Answers when what is kept can be read and can be trusted.
    ///
    /// - Throws: ``StoreFault``.
    func checkHealth() async throws
    /// Answers when changes can be written: the last commit succeeded, or a change that is tried now does.
    ///
    /// - Throws: ``StoreFault``.
    func checkWrites() async throws
    /// How long the oldest change has waited that is not on disk; zero without one.
    var oldestChangeWait: Duration { get }
    /// How long the commit has taken that is on its way. When none is, how long the oldest change has waited for one; zero
    /// without a change.
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
package typealias Store = AppStore & AttachmentRecordStore & ChannelStore & ContentStore & DeviceStore
    & GatewayStore & InboxStore & KeyRingStore
    & KeyStore & LeasedWorkStore
    & PushStore & ServerStore & ServiceStore & SubscriptionStore & UpdateStore & UserStore & VetoStore & WatchStore
