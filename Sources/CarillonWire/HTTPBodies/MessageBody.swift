/// What became of a message.
package struct MessageBody: Codable, Equatable, Sendable {
    package var id: String
    /// `waiting` until there is an outcome, then `final`.
    package var state: String
    /// Why the message left the inbox; absent while it waits.
    package var outcome: String?
    /// What the device said beside it: the code of its `ack` or `nack`.
    package var code: Int?
    package var acceptedAt: String
    package var expiresAt: String
    package var finalAt: String?
    /// What was done to wake the device, the oldest first: facts beside the outcome, which is what the app said.
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
