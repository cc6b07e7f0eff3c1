/// The state of a message.
package struct MessageBody: Codable, Equatable, Sendable {
    package var id: String
    /// `waiting` until the message has an outcome, then `final`.
    package var state: String
    /// Why the message left the inbox; absent while the message is waiting.
    package var outcome: String?
    /// The code of the device's `ack` or `nack`.
    package var code: Int?
    package var acceptedAt: String
    package var expiresAt: String
    package var finalAt: String?
    /// The pushes for this message, the oldest first. They are independent of the outcome, which the app reports.
    package var pushes: [PushBody]?
    package init(
        id: String, state: String, outcome: String?, code: Int?, acceptedAt: String, expiresAt: String, finalAt: String?,
        pushes: [PushBody]? = nil
    ) {
        self.id = id
        self.state = state
        self.outcome = outcome
        self.code = code
        self.acceptedAt = acceptedAt
        self.expiresAt = expiresAt
        self.finalAt = finalAt
        self.pushes = pushes
    }
}
