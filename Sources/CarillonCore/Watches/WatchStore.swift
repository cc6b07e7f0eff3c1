import CarillonWire

package protocol WatchStore: Sendable {
    /// Makes the channel's watch, or changes it: the secret of an existing one stays unless another is asked for. Its
    /// next ping is due as proposed, or earlier when one of the same address was due earlier.
    func putWatch(_ wish: WatchWish, at now: Timestamp) async throws -> PutWatchResult
    func watch(of channel: ChannelSerial) async throws -> Watch?
    /// Answers false when there was none.
    func removeWatch(of channel: ChannelSerial) async throws -> Bool

    /// After a time in which nobody called, spreads the pings that became due over the time that a first ping has.
    func spreadOverduePings(at now: Timestamp) async throws
    /// After a clock that was ahead, brings back what was put off by it: each call waits from now on for as long as it
    /// was to wait from then on.
    func bringBackCalls(at now: Timestamp, longestLease: Int64) async throws

    /// Calls that are due and not leased: of each app and kind the first of those lanes that have waited the longest,
    /// without those of the crowd. Of a lane there is one, of an app and kind at most `limit`.
    func dueCalls(at now: Timestamp, besides crowd: CallCrowds, limit: Int) async throws -> [DueCall]
    /// Takes those of the calls that are still due. A lease ends by being answered for, or at a moment, after which the
    /// call is due again. What cannot be read is put off, and counted.
    func leaseCalls(_ calls: [DueCall], at now: Timestamp, until end: Timestamp) async throws -> LeasedCalls
    /// Writes down what a ping found, and ends its lease. Answers false, and changes nothing but the lease, when the
    /// watch was changed or removed meanwhile, or the lease was not in force any more.
    func record(_ record: PingRecord) async throws -> Bool
    /// Writes down what became of a callback, and ends its lease. Answers false when the lease was not in force.
    func record(_ step: CallbackMachine.Step, of callback: DisconnectCallback, end: CallEnd) async throws -> Bool
}

/// See ``CallShares/crowd(onTrial:)``.
package struct CallCrowds: Equatable, Sendable {
    package var proven: CallCrowd
    package var onTrial: CallCrowd
    package init(proven: CallCrowd = CallCrowd(), onTrial: CallCrowd = CallCrowd()) {
        self.proven = proven
        self.onTrial = onTrial
    }
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

/// The most watches that there may be.
package struct WatchLimits: Equatable, Sendable {
    package var perDevice: Int
    package var perApp: Int

    package init(perDevice: Int = Limits.watchesPerDevice, perApp: Int = Limits.watchesPerApp) {
        self.perDevice = perDevice
        self.perApp = perApp
    }
}

package enum PutWatchResult: Equatable, Sendable {
    case put(Watch, isNew: Bool)
    case channelGone
    case tooManyOfDevice
    case tooManyOfApp
}

/// The right to make a call, with the number that fences off whoever had it before.
package struct CallLease: Equatable, Sendable {
    package var call: Int64
    package var fence: Int64
    package init(call: Int64, fence: Int64) {
        self.call = call
        self.fence = fence
    }
}

package struct LeasedCall: Equatable, Sendable {
    package enum Work: Equatable, Sendable {
        case ping(Watch)
        case callback(DisconnectCallback)
    }

    package var lease: CallLease
    package var due: DueCall
    package var standing: PeerStanding
    package var work: Work
    package init(lease: CallLease, due: DueCall, standing: PeerStanding, work: Work) {
        self.lease = lease
        self.due = due
        self.standing = standing
        self.work = work
    }
}

package struct LeasedCalls: Equatable, Sendable {
    package var calls: [LeasedCall]
    /// How many could not be read, and were put off.
    package var unreadable: Int
    package init(calls: [LeasedCall], unreadable: Int) {
        self.calls = calls
        self.unreadable = unreadable
    }
}

/// The end of a lease, and what the call says of the peer, whatever it was for.
package struct CallEnd: Equatable, Sendable {
    package var lease: CallLease
    package var app: AppSerial
    package var peer: String
    package var at: Timestamp
    package var standing: PeerStanding
    package var peerRestsUntil: Timestamp

    package init(of call: LeasedCall, at: Timestamp, standing: PeerStanding, peerRestsUntil: Timestamp) {
        lease = call.lease
        app = call.due.app
        peer = call.due.peer
        self.at = at
        self.standing = standing
        self.peerRestsUntil = peerRestsUntil
    }
}

/// What a ping found.
package struct PingRecord: Equatable, Sendable {
    package var end: CallEnd
    package var watch: WatchSerial
    package var revision: Int64
    package var machine: PingMachine
    /// Nil leaves what was known before.
    package var lastPing: Watch.LastPing?
    package var dueAt: Timestamp

    package init(
        end: CallEnd, watch: WatchSerial, revision: Int64, machine: PingMachine, lastPing: Watch.LastPing?,
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
