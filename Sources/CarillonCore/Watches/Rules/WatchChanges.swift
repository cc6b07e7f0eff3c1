/// The rows that ``WatchRules`` changes: the net effect of one call.
package struct WatchChanges: Equatable, Sendable {
    /// The change of the ping that a watch owes.
    package enum PingWork: Equatable, Sendable {
        /// There was no ping, and there is none now.
        case none
        case added(peer: String, dueAt: Timestamp)
        /// A lease of it stays.
        case moved(peer: String, dueAt: Timestamp)
        case removed
    }

    /// A watch that is made or changed.
    package struct Put: Equatable, Sendable {
        /// The store assigns the serial of a new one.
        package var watch: Watch
        package var isNew: Bool
        /// Is stored with a new one only.
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

    /// A watch, after a ping or a request of its back end.
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

    /// The end of a lease, with the standing of its peer.
    package struct LeaseEnd: Equatable, Sendable {
        package enum Work: Equatable, Sendable {
            /// Is due when it was due before.
            case stays
            case due(Timestamp)
            /// Is removed with its callback.
            case removed
        }

        package var end: WorkEnd
        package var work: Work

        package init(_ end: WorkEnd, _ work: Work) {
            self.end = end
            self.work = work
        }
    }

    /// A callback that waits from now on, due at once.
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

    /// A ping that is due at another moment.
    package struct MovedPing: Equatable, Sendable {
        package var work: Int64
        package var dueAt: Timestamp
        /// When the moment was set.
        package var at: Timestamp

        package init(work: Int64, dueAt: Timestamp, at: Timestamp) {
            self.work = work
            self.dueAt = dueAt
            self.at = at
        }
    }

    package enum Usage: Equatable, Sendable {
        /// The numbers are added to those in the store.
        case added(WatchUsage)
        /// The numbers are added, and become zero. The app has neither watches nor callbacks, and its numbers are removed.
        case emptied(WatchUsage)
    }

    package var leases: [LeaseEnd] = []
    package var put: Put?
    package var states: [State] = []
    package var movedPings: [MovedPing] = []
    /// The pings that they owe are removed with them.
    package var removedWatches: [WatchSerial] = []
    /// In the order in which they enter.
    package var callbacks: [NewCallback] = []
    /// The attempts of callbacks, by their numbers.
    package var attempts: [Int64: Int] = [:]
    package var removedCallbacks: [Int64] = []
    package var usage: [AppSerial: Usage] = [:]
    /// The number of callbacks that were given up for newer ones.
    package var dropped = 0

    package init() {}
}
