package import CarillonWire

/// An action on an app's updates. The entry contains neither payloads nor audiences, which may contain personal data.
package struct AuditEntry: Equatable, Sendable {
    package enum Action: String, CaseIterable, Sendable {
        case published, withdrawn, requeued, resumed
    }

    /// The number of the entry in the log. Numbers ascend.
    package var number: Int64
    package var at: Timestamp
    package var key: KeyID
    package var action: Action
    package var update: UpdateID
    /// The number of completions of a requeue.
    package var count: Int?

    package init(number: Int64 = 0, at: Timestamp, key: KeyID, action: Action, update: UpdateID, count: Int? = nil) {
        self.number = number
        self.at = at
        self.key = key
        self.action = action
        self.update = update
        self.count = count
    }

    /// The seconds for which entries are kept, and the number of entries of an app. Beyond either limit the oldest are removed.
    package static let keptSeconds: Int64 = 400 * 86_400
    package static let mostOfApp = 100_000
}
