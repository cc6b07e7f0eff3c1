package import CarillonWire

/// The answer of a device to an envelope.
package struct EnvelopeAnswer: Sendable {
    package var id: MessageID
    package var outcome: Outcome
    package var code: Int?

    package init(_ id: MessageID, _ outcome: Outcome, code: Int? = nil) {
        self.id = id
        self.outcome = outcome
        self.code = code
    }
}
