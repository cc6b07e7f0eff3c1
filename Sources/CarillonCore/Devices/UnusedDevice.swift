package import CarillonWire

/// A device that was not used for as long as a limit allows.
package struct UnusedDevice: Equatable, Sendable {
    /// The reason for the removal of an unused device.
    package enum Reason: String, CaseIterable, Sendable {
        /// A registered device that was not seen for a long time.
        case inactive
        /// A registered device that is suspended and was not seen for as long.
        case suspended
        /// An anonymous device that did not connect for a long time.
        case anonymousIdle = "anonymous_idle"
        /// An anonymous device that has no channel and did not connect.
        case anonymousUnused = "anonymous_unused"

        package var isOfAnonymous: Bool { self == .anonymousIdle || self == .anonymousUnused }
    }

    package var serial: DeviceSerial
    package var id: DeviceID
    package var app: AppID
    package var seenAt: Timestamp

    package init(serial: DeviceSerial, id: DeviceID, app: AppID, seenAt: Timestamp) {
        self.serial = serial
        self.id = id
        self.app = app
        self.seenAt = seenAt
    }
}
