package import CarillonWire

/// Data for every device of an audience, for as long as the update is live.
package struct Update: Equatable, Sendable {
    /// How often a device processes an update.
    package enum Mode: String, CaseIterable, Sendable {
        /// Once, also if the device leaves the audience and returns.
        case once
        /// Once for each time that the device enters the audience.
        case standing
    }

    package enum Status: Int, Sendable {
        case live = 0
        /// A newer update replaced this one.
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

    /// The part of an update that the publisher sets.
    package struct Definition: Equatable, Sendable {
        package var kind: UpdateKind
        /// The payload as the publisher sent it, valid for the kind.
        package var payload: [UInt8]
        /// A condition over device parameters; nil for every device.
        package var audience: String?
        package var mode: Mode
        package var ttlSeconds: Int64
        /// A device receives updates with the same key one after the other.
        package var orderKey: String?
        /// Whether sleeping devices of the audience are woken.
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
    /// Whether this is the update that requests devices to fetch all content. It is not in the log: each request for a device is
    /// an entry.
    package var isResync: Bool
    /// Whether delivery is paused: no device receives the update until it is resumed. The update can expire in the meantime.
    package var isPaused: Bool
    package var publishedAt: Timestamp
    package var expiresAt: Timestamp
    package var status: Status
    /// When the status last changed.
    package var statusAt: Timestamp
    /// The content that devices receive, stored once for all devices.
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

/// The store's number for an update. Numbers ascend in the order in which updates were published.
package struct UpdateSerial: Hashable, Comparable, Sendable {
    package var rawValue: Int64
    package init(_ rawValue: Int64) { self.rawValue = rawValue }
    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// Selects updates of an app for a list.
package enum UpdateFilter: String, CaseIterable, Sendable {
    case all
    /// Live updates, paused ones included.
    case live
    case paused
}
