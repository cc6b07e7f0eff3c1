package import CarillonWire

/// The object to which an envelope belongs.
package struct Origin: Hashable, Sendable {
    package enum Kind: Int, CaseIterable, Sendable {
        case channel = 0
        /// The device itself.
        case device = 1
        case subscription = 2
        case update = 3
        /// A request of one service to another, or its reply.
        case request = 4
    }

    package var kind: Kind
    /// The store's number of the object, never used twice within a kind.
    package var serial: Int64
    /// The identifier in the protocol; zero for the device itself.
    package var id: Bytes16

    package init(_ kind: Kind, serial: Int64, id: Bytes16) {
        self.kind = kind
        self.serial = serial
        self.id = id
    }

    package static func channel(_ serial: ChannelSerial, _ id: ChannelID) -> Origin {
        Origin(.channel, serial: serial.rawValue, id: id.value)
    }

    package static func device(_ serial: DeviceSerial) -> Origin {
        Origin(.device, serial: serial.rawValue, id: Bytes16(high: 0, low: 0))
    }

    package var key: OriginKey { OriginKey(kind: kind, serial: serial) }
}

/// The key by which the store finds an origin.
package struct OriginKey: Hashable, Sendable {
    package var kind: Origin.Kind
    package var serial: Int64

    package init(kind: Origin.Kind, serial: Int64) {
        self.kind = kind
        self.serial = serial
    }

    package static func channel(_ serial: ChannelSerial) -> OriginKey {
        OriginKey(kind: .channel, serial: serial.rawValue)
    }
}
