/// The result of the delivery of an envelope.
package enum DeliveryResult: Equatable, Sendable {
    /// The envelope is on disk and waits for the device.
    case stored
    /// The device answered before the envelope was on disk.
    case settled(Settlement)
    /// A live connection took the envelope, which is not kept.
    case given
    /// No connection took the envelope.
    case dropped
    /// The rules of the inbox refused the envelope.
    case refused(InboxResult)
    /// The store failed, and nothing was changed.
    case failed(StoreFault)
}
