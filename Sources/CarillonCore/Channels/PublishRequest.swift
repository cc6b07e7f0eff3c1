package import CarillonWire

/// A message that a sender posts to a channel token.
package struct PublishRequest: Sendable {
    package var body: [UInt8]
    package var coding: ContentCoding?
    /// The TTL in seconds. The server may shorten it.
    package var ttl: Int64
    package var urgency: Urgency
    package var topic: String?
    package var vapid: VapidCredentials?
    package var idempotencyKey: String?

    package init(
        body: [UInt8], coding: ContentCoding?, ttl: Int64, urgency: Urgency = .normal, topic: String? = nil,
        vapid: VapidCredentials? = nil, idempotencyKey: String? = nil
    ) {
        self.body = body
        self.coding = coding
        self.ttl = ttl
        self.urgency = urgency
        self.topic = topic
        self.vapid = vapid
        self.idempotencyKey = idempotencyKey
    }
}

/// The immediate answer to the sender.
package struct PublishReceipt: Equatable, Sendable {
    package var id: MessageID
    /// The TTL that applies, in seconds.
    package var ttl: Int64
    package var standing: Standing

    package enum Standing: Equatable, Sendable {
        /// The message is on disk and is waiting for the device.
        case waiting
        /// The message has TTL 0 and was offered to the device's connection.
        case offered
        case final(Outcome)
    }
}
