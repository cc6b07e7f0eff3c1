/// The result of the delivery of an envelope.
package enum DeliveryResult: Equatable, Sendable {
    /// The envelope is on disk and is waiting for the device.
    case stored
    /// The device acknowledged or rejected the envelope before it was on disk.
    case settled(Settlement)
    /// A live connection accepted the envelope, which is not stored.
    case given
    /// No connection accepted the envelope.
    case dropped
    /// The rules of the inbox rejected the envelope.
    case refused(InboxResult)
    /// The store failed, and nothing was changed.
    case failed(StoreFault)
}
