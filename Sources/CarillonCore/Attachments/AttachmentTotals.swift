/// Changes of the used bytes of quotas.
package struct AttachmentTotals: Equatable, Sendable {
    package struct Key: Hashable, Sendable {
        package var app: AppSerial
        /// The name of the quota; empty for the quota of the app.
        package var allowance: String

        package init(_ app: AppSerial, _ allowance: String) {
            self.app = app
            self.allowance = allowance
        }
    }

    /// The changes other than zero.
    package private(set) var changes: [Key: Int64] = [:]

    package init() {}

    /// Adds to the used bytes of a quota and of its app. A negative number subtracts.
    package mutating func add(_ bytes: Int64, to allowance: String, of app: AppSerial) {
        for key in [Key(app, ""), Key(app, allowance)] {
            let sum = changes[key, default: 0] + bytes
            changes[key] = sum == 0 ? nil : sum
        }
    }
}
