import CarillonWire

package protocol WatchStore: Sendable {
    /// Makes the channel's watch, or changes it: the secret of an existing one stays unless another is asked for. Its
    /// next ping is due as proposed, or earlier when one of the same address was due earlier. Nil when the channel is
    /// closed.
    func putWatch(_ wish: WatchWish, at now: Timestamp) async throws -> PutWatchResult?
    func watch(of channel: ChannelSerial) async throws -> Watch?
    /// Answers false when there was none.
    func removeWatch(of channel: ChannelSerial) async throws -> Bool

    /// After a time in which nobody called, spreads the pings that became due over the time that a first ping has.
    func spreadOverduePings(at now: Timestamp) async throws
    /// Takes calls that are due, at most one for each peer, and none for a peer that is leased. A lease ends by being
    /// answered for, or at a moment, after which the call is due again.
    func leaseCalls(at now: Timestamp, until end: Timestamp, limit: Int) async throws -> [LeasedCall]
    /// Writes down what a ping found, and ends its lease. Answers false, and changes nothing but the lease, when the
    /// watch was changed or removed meanwhile, or the lease was not in force any more.
    func record(_ record: PingRecord) async throws -> Bool
    /// Writes down what became of a callback, and ends its lease. Answers false when the lease was not in force.
    func record(_ step: CallbackMachine.Step, of callback: DisconnectCallback, lease: CallLease) async throws -> Bool
}

/// What a watch is to be.
package struct WatchWish: Sendable {
    package var channel: ChannelSerial
    package var ping: Watch.Ping?
    package var firstDueAt: Timestamp?
    package var disconnectAddress: CallAddress?
    package var sealed: Watch.Sealed
    package var callbackID: String
    package var renewsSecret: Bool

    package init(
        channel: ChannelSerial, ping: Watch.Ping?, firstDueAt: Timestamp?, disconnectAddress: CallAddress?,
        sealed: Watch.Sealed, callbackID: String, renewsSecret: Bool
    ) {
        self.channel = channel
        self.ping = ping
        self.firstDueAt = firstDueAt
        self.disconnectAddress = disconnectAddress
        self.sealed = sealed
        self.callbackID = callbackID
        self.renewsSecret = renewsSecret
    }
}

package struct PutWatchResult: Equatable, Sendable {
    package var watch: Watch
    package var isNew: Bool
    package init(watch: Watch, isNew: Bool) {
        self.watch = watch
        self.isNew = isNew
    }
}

/// The right to call a peer, with the number that fences off whoever had it before.
package struct CallLease: Equatable, Sendable {
    package var peer: Int64
    package var fence: Int64
    package init(peer: Int64, fence: Int64) {
        self.peer = peer
        self.fence = fence
    }
}

package struct LeasedCall: Equatable, Sendable {
    package enum Work: Equatable, Sendable {
        case ping(Watch)
        case callback(DisconnectCallback)
    }

    package var lease: CallLease
    package var work: Work
    package init(lease: CallLease, work: Work) {
        self.lease = lease
        self.work = work
    }
}

/// What a ping found.
package struct PingRecord: Equatable, Sendable {
    package var lease: CallLease
    package var watch: WatchSerial
    package var revision: Int64
    package var machine: PingMachine
    /// Nil leaves what was known before.
    package var lastPing: Watch.LastPing?
    package var dueAt: Timestamp

    package init(
        lease: CallLease, watch: WatchSerial, revision: Int64, machine: PingMachine, lastPing: Watch.LastPing?,
        dueAt: Timestamp
    ) {
        self.lease = lease
        self.watch = watch
        self.revision = revision
        self.machine = machine
        self.lastPing = lastPing
        self.dueAt = dueAt
    }
}

/// A change of a watch that is made in one with the envelope that tells of it.
package enum WatchChange: Equatable, Sendable {
    case pinged(PingRecord)
    /// The back end spoke for itself: the channel believes again that it answers.
    case vouchedFor(ChannelSerial)
}
