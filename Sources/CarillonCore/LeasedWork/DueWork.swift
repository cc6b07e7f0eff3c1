/// The purpose of an outgoing call. The numbers are stored, and are less than 32.
package enum WorkKind: Int, CaseIterable, Sendable {
    case ping = 0
    case callback = 1

    /// Whether the work is dropped when the app is deleted.
    package var endsWithApp: Bool {
        switch self {
        case .ping: true
        case .callback: false
        }
    }
}

/// Work that is due, with its owner and its destination.
///
/// Work of one app and one kind for one peer forms a queue. A store returns the first item of each queue.
package struct DueWork: Equatable, Sendable {
    package var serial: Int64
    package var kind: WorkKind
    package var app: AppSerial
    package var device: DeviceSerial
    /// Host and port.
    package var peer: String
    package var host: String
    package var isOnTrial: Bool
    package var readyAt: Timestamp
    /// The time at which an item of the queue was last served.
    package var servedAt: Timestamp

    package init(
        serial: Int64, kind: WorkKind, app: AppSerial, device: DeviceSerial, peer: String, host: String,
        isOnTrial: Bool, readyAt: Timestamp, servedAt: Timestamp
    ) {
        self.serial = serial
        self.kind = kind
        self.app = app
        self.device = device
        self.peer = peer
        self.host = host
        self.isOnTrial = isOnTrial
        self.readyAt = readyAt
        self.servedAt = servedAt
    }
}

/// The devices, hosts and peers for which no further call may begin now.
package struct BusyPeers: Equatable, Sendable {
    package var devices: Set<DeviceSerial> = []
    package var hosts: Set<String> = []
    package var peers: Set<String> = []

    package init() {}
}
