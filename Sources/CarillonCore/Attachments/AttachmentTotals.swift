/// Changes of the numbers of bytes that are used of allowances.
package struct AttachmentTotals: Equatable, Sendable {
    package struct Key: Hashable, Sendable {
        package var app: AppSerial
        /// Empty for all allowances of the app together.
        package var allowance: String

        package init(_ app: AppSerial, _ allowance: String) {
            self.app = app
            self.allowance = allowance
        }
    }

    /// The changes other than zero.
    package private(set) var changes: [Key: Int64] = [:]

    package init() {}

    /// Adds to the bytes that an allowance and its app use. A negative number subtracts.
    package mutating func add(_ bytes: Int64, to allowance: String, of app: AppSerial) {
        for key in [Key(app, ""), Key(app, allowance)] {
            let sum = changes[key, default: 0] + bytes
            changes[key] = sum == 0 ? nil : sum
        }
    }
}
