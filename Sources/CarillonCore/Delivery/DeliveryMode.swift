/// How an envelope reaches its device.
package enum DeliveryMode: Sendable {
    /// The envelope is kept until the device answers for it.
    case kept
    /// The envelope is kept, and a connected device may be offered it before it is on disk.
    case keptAndOffered
    /// The envelope is offered to the device's connection now, or is dropped (TTL 0, RFC 8030 section 5.2). The store gets its
    /// `Idempotency-Key` before the offer, and its outcome after the offer.
    case now
}
