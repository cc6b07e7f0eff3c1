import CarillonCore
import CarillonWire

/// The name of a lane of a link (``LinkLanes``): the first name of the device that a call has.
enum LinkLaneName: Hashable, Sendable {
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
