/// Whose device it is: the `sub` that the app's own server signed. Users of two apps have nothing to do with each other.
package struct UserID: Hashable, Sendable {
    package let text: String

    package static let longestBytes = 256

    /// Nil for a text that is empty, too long, or has control characters.
    package init?(_ text: String) {
        guard (1...Self.longestBytes).contains(text.utf8.count),
            !text.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7F })
        else { return nil }
        self.text = text
    }
}

/// What a device says of its user.
package enum UserClaim: Equatable, Sendable {
    case signedIn(UserID)
    case signedOut

    package var user: UserID? {
        if case .signedIn(let user) = self { user } else { nil }
    }
}
