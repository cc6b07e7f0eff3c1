package import CarillonWire

/// What a sender posts to a token.
package struct PublishRequest: Sendable {
    package var body: [UInt8]
    package var coding: ContentCoding?
    /// In seconds; the server may shorten it.
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

/// What the sender is told at once.
package struct PublishReceipt: Equatable, Sendable {
    package var id: MessageID
    /// The TTL in force, in seconds.
    package var ttl: Int64
    package var standing: Standing

    package enum Standing: Equatable, Sendable {
        /// On disk; it waits for the device.
        case waiting
        /// A message of TTL 0, handed to the device's connection.
        case offered
        case final(Outcome)
    }
}
