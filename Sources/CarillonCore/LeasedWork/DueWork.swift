/// What work with the outside is for; the numbers are stored, and are below 32.
package enum WorkKind: Int, CaseIterable, Sendable {
    case ping = 0
    case callback = 1

    /// Whether nobody is interested any more when the app was deleted.
    package var endsWithApp: Bool {
        switch self {
        case .ping: true
        case .callback: false
        }
    }
}

/// Work that is due: whose it is, and where it goes.
///
/// Work of one app and one kind for one peer forms a queue; a store gives the first of each.
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
    /// When its queue had its last turn.
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

/// Those of whom no further call may begin now.
package struct BusyPeers: Equatable, Sendable {
    package var devices: Set<DeviceSerial> = []
    package var hosts: Set<String> = []
    package var peers: Set<String> = []

    package init() {}
}
