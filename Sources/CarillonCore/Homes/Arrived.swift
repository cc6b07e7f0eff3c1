/// The result of the arrival of a device at its home.
package enum Arrived: Sendable {
    /// The connection is the device's session. The page is ``InboxPage/unread`` if it must be loaded.
    case device(ArrivedDevice)
    /// There is no such device, or the proof is not valid. The connection is not a session.
    case unknownDevice
    /// The device or its inbox cannot be read. The connection is not a session.
    case failed(StoreFault)

    /// The device, if it is connected.
    package var device: ArrivedDevice? {
        if case .device(let device) = self { device } else { nil }
    }
}
