/// The rows that ``WatchRules`` changes: the net effect of one call.
package struct WatchChanges: Equatable, Sendable {
    /// The change of the ping of a watch.
    package enum PingWork: Equatable, Sendable {
        /// The watch had no ping before the change, and has no ping now.
        case none
        case added(peer: String, dueAt: Timestamp)
        /// The ping is due at another time. Its lease stays.
        case moved(peer: String, dueAt: Timestamp)
        case removed
    }

    /// A watch that is created or changed.
    package struct Put: Equatable, Sendable {
        /// The store assigns the serial number of a new watch.
        package var watch: Watch
        package var isNew: Bool
        /// The callback id, which is stored with a new watch only.
        package var callbackID: String
        package var ping: PingWork
        package var at: Timestamp

        package init(watch: Watch, isNew: Bool, callbackID: String, ping: PingWork, at: Timestamp) {
            self.watch = watch
            self.isNew = isNew
            self.callbackID = callbackID
            self.ping = ping
            self.at = at
        }
    }

    /// The state of a watch after a ping or a request of its backend.
    package struct State: Equatable, Sendable {
        package var watch: WatchSerial
        package var revision: Int64
        package var machine: PingMachine
        /// Nil if the value in the store stays.
        package var lastPing: Watch.LastPing?

        package init(watch: WatchSerial, revision: Int64, machine: PingMachine, lastPing: Watch.LastPing?) {
            self.watch = watch
            self.revision = revision
            self.machine = machine
            self.lastPing = lastPing
        }
    }

    /// The end of a lease, with the reliability of its peer.
    package struct LeaseEnd: Equatable, Sendable {
        package enum Work: Equatable, Sendable {
            /// The work is due when it was due before.
            case stays
            case due(Timestamp)
            /// The work is removed with its callback.
            case removed
        }

        package var end: WorkEnd
        package var work: Work

        package init(_ end: WorkEnd, _ work: Work) {
            self.end = end
            self.work = work
        }
    }

    /// A new callback, which is due at once.
    package struct NewCallback: Equatable, Sendable {
        package var channel: ChannelSerial
        package var device: DeviceSerial
        package var app: AppSerial
        package var address: CallAddress
        package var sealed: Watch.Sealed
        package var webhookID: String
        package var reason: DisconnectReason
        package var endedAt: Timestamp

        package init(_ watch: EndingWatch, _ address: CallAddress, because reason: DisconnectReason, at endedAt: Timestamp) {
            channel = watch.channel
            device = watch.device
            app = watch.app
            self.address = address
            sealed = watch.sealed
            webhookID = watch.callbackID
            self.reason = reason
            self.endedAt = endedAt
        }
    }

    /// A ping that is due at another time.
    package struct MovedPing: Equatable, Sendable {
        package var work: Int64
        package var dueAt: Timestamp
        /// The time of this change.
        package var at: Timestamp

        package init(work: Int64, dueAt: Timestamp, at: Timestamp) {
            self.work = work
            self.dueAt = dueAt
            self.at = at
        }
    }

    package enum Usage: Equatable, Sendable {
        /// The numbers are added to the numbers in the store.
        case added(WatchUsage)
        /// The numbers are added, and become zero. The app has no more watches and callbacks, and its row is removed.
        case emptied(WatchUsage)
    }

    package var leases: [LeaseEnd] = []
    package var put: Put?
    package var states: [State] = []
    package var movedPings: [MovedPing] = []
    /// The watches to remove, together with their pings.
    package var removedWatches: [WatchSerial] = []
    /// The callbacks in the order in which they enter.
    package var callbacks: [NewCallback] = []
    /// The attempts of callbacks, by their serial numbers.
    package var attempts: [Int64: Int] = [:]
    package var removedCallbacks: [Int64] = []
    package var usage: [AppSerial: Usage] = [:]
    /// The number of callbacks that were dropped for newer ones.
    package var dropped = 0

    package init() {}
}
