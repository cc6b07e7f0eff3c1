/// Decides how many bytes an upload may use of the quotas of its owner and of its app.
///
/// An incomplete upload counts its received bytes, and a reservation for its next bytes. The quotas must have room for the whole
/// length when the upload begins, and each time it needs another reservation.
package enum AttachmentRules {
    /// The used bytes of the quotas, without the upload itself.
    package struct Usage: Equatable, Sendable {
        /// The bytes used by the user, or by a device without a user; nil for senders, whose only limit is that of their app.
        package var user: Int64?
        package var app: Int64
        /// The bytes reserved by the user's other incomplete uploads.
        package var reserved: Int64

        package init(user: Int64?, app: Int64, reserved: Int64) {
            self.user = user
            self.app = app
            self.reserved = reserved
        }
    }

    package enum Decision: Equatable, Sendable {
        /// The number of bytes that the upload counts from now on.
        case counts(Int64)
        case overUser(limit: Int64)
        case overApp(limit: Int64)
        case overReserved(limit: Int64)
    }

    /// - Parameter received: The number of received bytes.
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

    /// Returns the bytes that an upload counts if it may send no more.
    package static func charge(received: Int64, _ limits: AttachmentLimits) -> Int64 { max(limits.leastCharge, received) }

    /// Returns the bytes that a complete upload counts.
    ///
    /// - Parameter charged: The bytes that the upload counted before.
    package static func charge(ofWhole length: Int64, charged: Int64) -> Int64 { max(charged, length) }
}
