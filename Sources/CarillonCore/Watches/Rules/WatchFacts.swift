package import CarillonWire

/// A channel for which a watch is requested, and the owner of the channel.
package struct WatchedChannel: Equatable, Sendable {
    package var serial: ChannelSerial
    package var id: ChannelID
    package var device: DeviceSerial
    package var app: AppSerial
    /// Whether the user of the device changed, and the device was not notified yet.
    package var isOfFormerUser: Bool
    package var isAppDeleted: Bool

    package init(
        serial: ChannelSerial, id: ChannelID, device: DeviceSerial, app: AppSerial, isOfFormerUser: Bool = false,
        isAppDeleted: Bool = false
    ) {
        self.serial = serial
        self.id = id
        self.device = device
        self.app = app
        self.isOfFormerUser = isOfFormerUser
        self.isAppDeleted = isAppDeleted
    }
}

/// The number of watches and of waiting callbacks of an app.
package struct WatchUsage: Equatable, Sendable {
    package var watches: Int
    package var callbacks: Int

    package init(watches: Int = 0, callbacks: Int = 0) {
        self.watches = watches
        self.callbacks = callbacks
    }
}

/// The facts that are needed to put a watch.
package struct PutWatchFacts: Equatable, Sendable {
    package struct Counts: Equatable, Sendable {
        /// The number of watches of the device.
        package var ofDevice: Int
        package var ofApp: WatchUsage

        package init(ofDevice: Int, ofApp: WatchUsage) {
            self.ofDevice = ofDevice
            self.ofApp = ofApp
        }
    }

    /// Nil if there is no such channel.
    package var channel: WatchedChannel?
    /// The watch of the channel, if there is one.
    package var watch: Watch?
    /// Nil if the counts were not read.
    package var counts: Counts?

    package init(channel: WatchedChannel? = nil, watch: Watch? = nil, counts: Counts? = nil) {
        self.channel = channel
        self.watch = watch
        self.counts = counts
    }
}

/// The facts on which the result of a ping depends.
package struct WatchState: Equatable, Sendable {
    package var revision: Int64
    /// Whether the watch has a ping address.
    package var isPinged: Bool
    package var machine: PingMachine

    package init(revision: Int64, isPinged: Bool, machine: PingMachine) {
        self.revision = revision
        self.isPinged = isPinged
        self.machine = machine
    }
}

/// The facts about the watches of ping results and ``Effect``s. A missing value is not in the store.
package struct WatchFacts: Equatable, Sendable {
    /// The leases, by the serial number of the work.
    package var leases: [Int64: StoredLease] = [:]
    package var states: [WatchSerial: WatchState] = [:]
    package var watches: [ChannelSerial: WatchSerial] = [:]

    package init() {}

    /// Changes the facts to the state after the changes were written.
    package mutating func apply(_ changes: WatchChanges) {
        for end in changes.leases { leases[end.end.lease.work]?.isHeld = false }
        for state in changes.states {
            states[state.watch]?.revision = state.revision
            states[state.watch]?.machine = state.machine
        }
    }
}

/// The facts that are needed to store the result of a callback.
package struct CallbackFacts: Equatable, Sendable {
    /// Nil if the work was removed.
    package var lease: StoredLease?
    /// The usage of the callback's app.
    package var usage: WatchUsage

    package init(lease: StoredLease?, usage: WatchUsage) {
        self.lease = lease
        self.usage = usage
    }
}

/// The waiting callbacks of one app for one host and port.
package struct CallbackQueue: Hashable, Sendable {
    package var app: AppSerial
    package var peer: String

    package init(_ app: AppSerial, _ peer: String) {
        self.app = app
        self.peer = peer
    }
}

/// A waiting callback.
package struct WaitingCallback: Equatable, Sendable {
    package var serial: Int64
    package var queue: CallbackQueue

    package init(serial: Int64, queue: CallbackQueue) {
        self.serial = serial
        self.queue = queue
    }
}

/// The watch of a channel that ends.
package struct EndingWatch: Equatable, Sendable {
    package var serial: WatchSerial
    package var channel: ChannelSerial
    package var device: DeviceSerial
    package var app: AppSerial
    /// Nil if no callback is to be made.
    package var disconnectAddress: CallAddress?
    package var callbackID: String
    package var sealed: Watch.Sealed

    package init(
        serial: WatchSerial, channel: ChannelSerial, device: DeviceSerial, app: AppSerial, disconnectAddress: CallAddress?,
        callbackID: String, sealed: Watch.Sealed
    ) {
        self.serial = serial
        self.channel = channel
        self.device = device
        self.app = app
        self.disconnectAddress = disconnectAddress
        self.callbackID = callbackID
        self.sealed = sealed
    }
}

/// The further facts that ``WatchRules`` needs when channels end.
package struct ChannelEndQuestions: Equatable, Sendable {
    /// The queues whose number of waiting callbacks is needed.
    package var queues: Set<CallbackQueue> = []
    /// The queues whose oldest callbacks are needed, with the maximum number of callbacks.
    package var oldestOfQueues: [CallbackQueue: Int] = [:]
    /// The apps whose oldest callbacks are needed, with the maximum number of callbacks.
    package var oldestOfApps: [AppSerial: Int] = [:]

    package init() {}

    package var isEmpty: Bool { self == ChannelEndQuestions() }
}

/// The facts that are needed when channels end.
package struct ChannelEndFacts: Equatable, Sendable {
    /// All watches of the channels.
    package var watches: [EndingWatch] = []
    /// The usage of the apps of the watches.
    package var usage: [AppSerial: WatchUsage] = [:]
    /// The number of waiting callbacks in each queue.
    package var waiting: [CallbackQueue: Int] = [:]
    /// The oldest is the first.
    package var oldestOfQueues: [CallbackQueue: [Int64]] = [:]
    /// The oldest is the first.
    package var oldestOfApps: [AppSerial: [WaitingCallback]] = [:]

    package init() {}
}

/// A ping that was due before a certain time.
package struct OverduePing: Equatable, Sendable {
    package var work: Int64
    package var intervalSeconds: Int
    package var dueAt: Timestamp

    package init(work: Int64, intervalSeconds: Int, dueAt: Timestamp) {
        self.work = work
        self.intervalSeconds = intervalSeconds
        self.dueAt = dueAt
    }
}
