/// How an envelope reaches its device.
package enum DeliveryMode: Sendable {
    /// The envelope is stored until the device acknowledges or rejects it.
    case kept
    /// The envelope is stored, and may be offered to a connected device before it is on disk.
    case keptAndOffered
    /// The envelope is offered to the device's connection now, or is dropped (TTL 0, RFC 8030 section 5.2). The store receives
    /// its `Idempotency-Key` before the offer, and its outcome after the offer.
    case now
}
