package import CarillonWire

/// Something for every device of an audience, now or while it lives.
package struct Update: Equatable, Sendable {
    /// How often a device is given it.
    package enum Mode: String, CaseIterable, Sendable {
        /// Once, whether it matched early or late.
        case once
        /// Once for each time that it enters the audience.
        case standing
    }

    package enum Status: Int, Sendable {
        case live = 0
        /// A newer update took its place.
        case superseded = 1
        case withdrawn = 2
        case expired = 3

        package var name: String {
            switch self {
            case .live: "live"
            case .superseded: "superseded"
            case .withdrawn: "withdrawn"
            case .expired: "expired"
            }
        }
    }

    /// What its sender says of it.
    package struct Definition: Equatable, Sendable {
        package var kind: UpdateKind
        /// As it was written, of the kind's form.
        package var payload: [UInt8]
        /// A condition over parameters; nil for every device.
        package var audience: String?
        package var mode: Mode
        package var ttlSeconds: Int64
        /// Of updates with the same key a device is given one after the other.
        package var orderKey: String?
        /// Devices that sleep and match are woken for it.
        package var wakes: Bool
        package var supersedes: UpdateID?

        package init(
            kind: UpdateKind, payload: [UInt8], audience: String?, mode: Mode, ttlSeconds: Int64, orderKey: String?,
            wakes: Bool = false, supersedes: UpdateID?
        ) {
            self.kind = kind
            self.payload = payload
            self.audience = audience
            self.mode = mode
            self.ttlSeconds = ttlSeconds
            self.orderKey = orderKey
            self.wakes = wakes
            self.supersedes = supersedes
        }
    }

    package var serial: UpdateSerial
    package var id: UpdateID
    package var app: AppSerial
    package var kind: UpdateKind
    package var audience: String?
    package var mode: Mode
    package var orderKey: String?
    package var wakes: Bool
    package var supersedes: UpdateID?
    /// That which tells a device to fetch everything. It is in no log: each time that it is told is an entry.
    package var isResync: Bool
    /// No device is given it, for the first time or again, until it is resumed. Its time passes meanwhile.
    package var isPaused: Bool
    package var publishedAt: Timestamp
    package var expiresAt: Timestamp
    package var status: Status
    /// When it became what it is.
    package var statusAt: Timestamp
    /// What devices are given: kept once for all of them.
    package var body: [UInt8]
    package var content: SharedContentID

    package init(
        serial: UpdateSerial, id: UpdateID, app: AppSerial, kind: UpdateKind, audience: String?, mode: Mode,
        orderKey: String?, wakes: Bool = false,
        supersedes: UpdateID?, isResync: Bool = false, isPaused: Bool = false, publishedAt: Timestamp,
        expiresAt: Timestamp, status: Status, statusAt: Timestamp,
        body: [UInt8], content: SharedContentID
    ) {
        self.serial = serial
        self.id = id
        self.app = app
        self.kind = kind
        self.audience = audience
        self.mode = mode
        self.orderKey = orderKey
        self.wakes = wakes
        self.supersedes = supersedes
        self.isResync = isResync
        self.isPaused = isPaused
        self.publishedAt = publishedAt
        self.expiresAt = expiresAt
        self.status = status
        self.statusAt = statusAt
        self.body = body
        self.content = content
    }

    package var origin: Origin { Origin(.update, serial: serial.rawValue, id: id.value) }
}

/// The store's number for an update; it ascends in the order in which updates were published.
package struct UpdateSerial: Hashable, Comparable, Sendable {
    package var rawValue: Int64
    package init(_ rawValue: Int64) { self.rawValue = rawValue }
    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

package struct UpdateLimits: Equatable, Sendable {
    /// Live updates of an app.
    package var live: Int
    /// Those of them whose audience no index finds.
    package var unindexed: Int
    /// Bytes of the audiences of all of them that are not paused.
    package var audienceBytes: Int
    /// Ended updates of an app of which is known what became of them; beyond it the oldest are forgotten.
    package var ended: Int
    /// How long that is known at most.
    package var endedSeconds: Int64

    package init(
        live: Int = 2000, unindexed: Int = 200, audienceBytes: Int = 8 << 20, ended: Int = 10_000,
        endedSeconds: Int64 = 30 * 86_400
    ) {
        self.live = live
        self.unindexed = unindexed
        self.audienceBytes = audienceBytes
        self.ended = ended
        self.endedSeconds = endedSeconds
    }

    /// How long an update may live, in seconds.
    package static let ttlSeconds: ClosedRange<Int64> = 60...(366 * 86_400)
    /// Of an update that does not say.
    package static let standardTTLSeconds: Int64 = 30 * 86_400
    package static let orderKeyBytes = 128
    package static let audienceBytes = 49_152
    package static let audienceConstants = 5000
    /// What an audience may cost for one device, in units of the language.
    package static let audienceCost = 1000
}

/// Which updates of an app a list has.
package enum UpdateFilter: String, CaseIterable, Sendable {
    case all
    /// Live updates, paused ones included.
    case live
    case paused
}
