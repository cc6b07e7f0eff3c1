/// The complete store of a server.
///
/// The following applies to each method, unless its comment states otherwise:
///
/// - A method that writes is one transaction. Its change is made completely or not at all, and is on disk when the method
///   returns. The method checks its conditions in the same transaction.
/// - Changes take effect one after another. A call that begins after a change was returned sees the change. A concurrent call
///   sees all of the change or nothing. A read sees the store as it was at one moment.
/// - Methods throw ``StoreFault``. A method that writes has changed nothing then. An outcome that the caller must expect, such as
///   a limit or a missing row, is a value.
/// - No method takes a function, so no code of the caller runs inside a transaction. A caller reads, decides, and writes. If the
///   data of the decision may have changed meanwhile, the method that writes takes this data as well, and writes nothing if it is
///   outdated.
/// - Cases for each method are in `Tests/StoreConformance`.
package typealias Store = AppDocumentStore & AppStore & AttachmentRecordStore & FencedStore & HomeStore & KeyRingStore
    & KeyStore & NodeStore & ServerStore

/// The part of the store that a home uses, through its own handle (``FencedStore/home(_:)``).
package typealias HomeStore = ChannelStore & DeletionStore & DeviceStore & FormerChannelStore & HandOverStore
    & InboxStore & LeasedWorkStore & PushStore & ServiceStore & ShardStore & SharedContentStore & SubscriptionStore
    & UpdateStore & WatchStore

/// Returns handles of the store for homes.
package protocol FencedStore: Sendable {
    /// Returns the handle of the home with this fence. Each method through the handle does the same as the store's, as long as
    /// the incarnation of the fence was added and not removed. After that, a write changes nothing and throws a ``StoreFault`` of
    /// the kind `fenced`. The check and the write are one change: a call that sees the removal of a home sees no later write of
    /// that home. Reads are not refused.
    func home(_ fence: HomeFence) -> any HomeStore
}
