/// A party that uploads or can fetch attachments: a device, or all holders of a sender key of the app.
package enum Party: Hashable, Sendable {
    case device(DeviceSerial)
    case senders

    /// The number in the store. 0 is the number of no device.
    package var number: Int64 {
        switch self {
        case .device(let device): device.rawValue
        case .senders: 0
        }
    }

    package init(number: Int64) { self = number == 0 ? .senders : .device(DeviceSerial(number)) }
}

/// A party of an app.
package struct AttachmentUser: Hashable, Sendable {
    package var app: AppSerial
    package var party: Party

    package init(app: AppSerial, party: Party) {
        self.app = app
        self.party = party
    }
}
