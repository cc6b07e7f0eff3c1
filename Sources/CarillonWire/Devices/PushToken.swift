import CarillonBasics

/// The address of one install of one app at a vendor's push service. The vendor decides its length.
package struct PushToken: Hashable, Sendable {
    package static let longestBytes = 512

    package let bytes: [UInt8]

    /// Reads hexadecimal digits of either case.
    ///
    /// - Throws: A refusal with the reason. The refusal contains no part of the token.
    package init(hexadecimal text: some StringProtocol) throws(Refusal) {
        guard !text.isEmpty else { throw Self.refusal("is empty") }
        guard text.utf8.count <= 2 * Self.longestBytes else {
            throw Self.refusal("is longer than \(2 * Self.longestBytes) digits")
        }
        guard text.utf8.allSatisfy({ Hexadecimal.value(of: $0) != nil }) else {
            throw Self.refusal("has characters that are no hexadecimal digits, such as spaces or brackets")
        }
        guard let bytes = Hexadecimal.decode(text) else { throw Self.refusal("has an odd number of digits") }
        self.bytes = bytes
    }

    /// Reads a stored token. Returns nil for an empty or too long value.
    package init?(stored bytes: [UInt8]) {
        guard (1...Self.longestBytes).contains(bytes.count) else { return nil }
        self.bytes = bytes
    }

    /// The token as lower-case hexadecimal digits.
    package var hexadecimal: String { Hexadecimal.encode(bytes) }

    private static func refusal(_ why: String) -> Refusal {
        Refusal(
            .pushTokenInvalid, "The push token \(why); it must be the hexadecimal digits of what the system gave the app.")
    }
}

extension PushToken: CustomStringConvertible {
    /// A text without any part of the token, because a token and a signing key suffice to push to the device.
    package var description: String { "a push token of \(bytes.count) bytes" }
}
