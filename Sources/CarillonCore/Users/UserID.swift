/// The user of a device: the `sub` of a token that the app's backend signed. Users of two apps are unrelated.
package struct UserID: Hashable, Sendable {
    package let text: String

    package static let longestBytes = 256

    /// Returns nil if the text is empty, too long, or has control characters.
    package init?(_ text: String) {
        guard (1...Self.longestBytes).contains(text.utf8.count),
            !text.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7F })
        else { return nil }
        self.text = text
    }
}

/// The user that a device reports.
package enum UserClaim: Equatable, Sendable {
    case signedIn(UserID)
    case signedOut

    package var user: UserID? {
        if case .signedIn(let user) = self { user } else { nil }
    }
}
