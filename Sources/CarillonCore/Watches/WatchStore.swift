/// Stores the watches of channels, with their pings and callbacks (``LeasedWorkStore``). Methods that write are atomic and
/// durable, as ``Store`` describes.
package protocol WatchStore: Sendable {
    /// Stores or changes the watch of a channel, with its next ping, in one transaction.
    ///
    /// A change keeps the secret unless `renewsSecret` is set, increments the revision, and does not end a lease. The next ping
    /// is due as proposed. If the address is the same and its ping was due earlier, that time stays. The limits for new watches
    /// are checked in the same transaction: concurrent calls do not exceed them.
    ///
    /// - Returns: ``PutWatchResult/channelGone`` also for a channel of a deleted app or of a former user.
    func putWatch(_ request: WatchRequest, at now: Timestamp) async throws -> PutWatchResult
    /// Returns the watch of a channel; nil if the channel has no watch.
    ///
    /// - Throws: ``StoreFault`` also if the watch cannot be read.
    func watch(of channel: ChannelSerial) async throws -> Watch?
    /// Removes the watch of a channel and its ping. Returns false if the channel has no watch. Of concurrent calls, one returns
    /// true.
    func removeWatch(of channel: ChannelSerial) async throws -> Bool

    /// Leases work in one transaction. Items that were removed, are not due any more or have a lease are left out. Of
    /// concurrent calls, one leases an item.
    /// A lease has a fence that is greater than those of all earlier leases of the item. It ends with a result or at `end`. After
    /// that, the item is due again. An item that cannot be read is postponed by an hour and counted; the others are leased.
    func leaseWork(
        _ work: [DueWork], at now: Timestamp, until end: Timestamp
    ) async throws -> LeasedItems<WatchSubject>
    /// Postpones overdue pings in one transaction: each to a time within its interval, and within
    /// ``PingMachine/firstWithinSeconds``, after `now`. Pings for devices in other shards are not changed.
    func spreadOverduePings(in shards: ShardSet, at now: Timestamp) async throws
    /// Stores the result of a ping and ends its lease, in one transaction.
    ///
    /// - Returns: False if the lease was not in force. Then nothing changes. Also false if the watch was changed or removed since
    ///   the ping was leased. Then the lease ends, and nothing else changes. A result after the end of the lease counts until the
    ///   ping is leased again. Of concurrent calls, one returns true.
    func record(_ record: PingRecord) async throws -> Bool
    /// Stores the result of a callback and ends its lease, in one transaction. A callback that is done, given up or lost is
    /// removed.
    ///
    /// - Returns: False if the lease was not in force. Then nothing changes. Of concurrent calls, one returns true.
    func record(_ step: CallbackMachine.Step, of callback: DisconnectCallback, end: WorkEnd) async throws -> Bool
}

/// The requested values of a watch.
package struct WatchRequest: Sendable {
    package var channel: ChannelSerial
    package var ping: Watch.Ping?
    package var firstDueAt: Timestamp?
    package var disconnectAddress: CallAddress?
    package var sealed: Watch.Sealed
    package var callbackID: String
    package var renewsSecret: Bool
    package var limits: WatchLimits

    package init(
        channel: ChannelSerial, ping: Watch.Ping?, firstDueAt: Timestamp?, disconnectAddress: CallAddress?,
        sealed: Watch.Sealed, callbackID: String, renewsSecret: Bool, limits: WatchLimits = WatchLimits()
    ) {
        self.channel = channel
        self.ping = ping
        self.firstDueAt = firstDueAt
        self.disconnectAddress = disconnectAddress
        self.sealed = sealed
        self.callbackID = callbackID
        self.renewsSecret = renewsSecret
        self.limits = limits
    }
}

package enum PutWatchResult: Equatable, Sendable {
    case put(Watch, isNew: Bool)
    case channelGone
    case tooManyOfDevice
    case tooManyOfApp
}

/// The result of a ping.
package struct PingRecord: Equatable, Sendable {
    package var end: WorkEnd
    package var watch: WatchSerial
    package var revision: Int64
    package var machine: PingMachine
    /// Nil keeps the earlier value.
    package var lastPing: Watch.LastPing?
    package var dueAt: Timestamp

    package init(
        end: WorkEnd, watch: WatchSerial, revision: Int64, machine: PingMachine, lastPing: Watch.LastPing?,
        dueAt: Timestamp
    ) {
        self.end = end
        self.watch = watch
        self.revision = revision
        self.machine = machine
        self.lastPing = lastPing
        self.dueAt = dueAt
    }
}
