/// Decides what an upload may take of the allowances of its owner and of its app.
///
/// An upload that is not whole counts the bytes that came, and some that it may bring next. That its whole length has room is checked when it
/// begins, and each time that it brings more than that.
package enum AttachmentRules {
    /// What is used of allowances, without the upload itself.
    package struct Usage: Equatable, Sendable {
        /// By the user, or by a device without one; nil of senders, who have no other bound than their app.
        package var user: Int64?
        package var app: Int64
        /// What the user's other uploads that are not whole may bring next.
        package var reserved: Int64

        package init(user: Int64?, app: Int64, reserved: Int64) {
            self.user = user
            self.app = app
            self.reserved = reserved
        }
    }

    package enum Decision: Equatable, Sendable {
        /// So much is counted from now on.
        case counts(Int64)
        case overUser(limit: Int64)
        case overApp(limit: Int64)
        case overReserved(limit: Int64)
    }

    /// - Parameter received: How much of it came.
    package static func decide(
        length: Int64, received: Int64, _ usage: Usage, _ limits: AttachmentLimits
    ) -> Decision {
        let whole = max(length, limits.leastCharge)
        let next = min(length - received, limits.aheadBytes)
        if let user = usage.user, user + whole > limits.userBytes { return .overUser(limit: limits.userBytes) }
        if usage.app + whole > limits.appBytes { return .overApp(limit: limits.appBytes) }
        if usage.user != nil, usage.reserved + next > limits.reservedOfUser {
            return .overReserved(limit: limits.reservedOfUser)
        }
        return .counts(max(limits.leastCharge, received + next))
    }

    /// What an upload counts that may bring no more.
    package static func charge(received: Int64, _ limits: AttachmentLimits) -> Int64 { max(limits.leastCharge, received) }

    /// Returns the bytes that a complete upload counts.
    ///
    /// - Parameter charged: The bytes that the upload counted before.
    package static func charge(ofWhole length: Int64, charged: Int64) -> Int64 { max(charged, length) }
}
