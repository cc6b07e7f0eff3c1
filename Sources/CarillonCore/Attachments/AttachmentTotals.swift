/// What is added to the bytes that are used of allowances.
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

    /// Without those that add nothing.
    package private(set) var changes: [Key: Int64] = [:]

    package init() {}

    /// An attachment counts so many bytes more, or fewer, of its allowance, and of that of its app.
    package mutating func add(_ bytes: Int64, to allowance: String, of app: AppSerial) {
        for key in [Key(app, ""), Key(app, allowance)] {
            let sum = changes[key, default: 0] + bytes
            changes[key] = sum == 0 ? nil : sum
        }
    }
}
