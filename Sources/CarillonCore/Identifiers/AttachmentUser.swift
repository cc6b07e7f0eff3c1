/// A reader or uploader of attachments: a device, or all senders of the app together.
package enum AttachmentPrincipal: Hashable, Sendable {
    case device(DeviceSerial)
    case senders

    /// The number in the store. No device has the number 0.
    package var number: Int64 {
        switch self {
        case .device(let device): device.rawValue
        case .senders: 0
        }
    }

    package init(number: Int64) { self = number == 0 ? .senders : .device(DeviceSerial(number)) }
}

/// A device of an app, or its senders.
package struct AttachmentUser: Hashable, Sendable {
    package var app: AppSerial
    package var principal: AttachmentPrincipal

    package init(app: AppSerial, principal: AttachmentPrincipal) {
        self.app = app
        self.principal = principal
    }
}
