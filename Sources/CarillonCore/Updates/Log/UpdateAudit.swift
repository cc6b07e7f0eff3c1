package import CarillonWire

/// What somebody did with an app's updates. It has neither payloads nor audiences, which may be about people.
package struct AuditEntry: Equatable, Sendable {
    package enum Action: String, CaseIterable, Sendable {
        case published, withdrawn, requeued, resumed
    }

    /// Its place in the log, which ascends.
    package var number: Int64
    package var at: Timestamp
    package var key: KeyID
    package var action: Action
    package var update: UpdateID
    /// Of what was put back: at how many devices.
    package var count: Int?

    package init(number: Int64 = 0, at: Timestamp, key: KeyID, action: Action, update: UpdateID, count: Int? = nil) {
        self.number = number
        self.at = at
        self.key = key
        self.action = action
        self.update = update
        self.count = count
    }

    /// How long entries are kept, and how many of an app: beyond either the oldest go.
    package static let keptSeconds: Int64 = 400 * 86_400
    package static let mostOfApp = 100_000
}
