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
    /// Writes down what a ping found, and ends its lease. Answers false, and changes nothing but the lease, when the
    /// watch was changed or removed meanwhile, or the lease was not in force any more.
    func record(_ record: PingRecord) async throws -> Bool
    /// Writes down what became of a callback, and ends its lease. Answers false when the lease was not in force.
    func record(_ step: CallbackMachine.Step, of callback: DisconnectCallback, end: WorkEnd) async throws -> Bool
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

/// What a ping found.
package struct PingRecord: Equatable, Sendable {
    package var end: WorkEnd
    package var watch: WatchSerial
    package var revision: Int64
    package var machine: PingMachine
    /// Nil leaves what was known before.
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
