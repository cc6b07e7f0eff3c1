import CarillonCore
import CarillonWire

/// The name of a queue of a link (``LinkQueues``): the first name of the device in a call.
enum LinkQueueName: Hashable, Sendable {
    case id(DeviceID)
    case credential([UInt8])
    case serial(DeviceSerial)

    init(_ name: DeviceName) {
        switch name {
        case .id(let device, _): self = .id(device)
        case .credential(let hash): self = .credential(hash.bytes)
        }
    }
}
