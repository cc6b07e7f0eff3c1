/// The name of an app, in the form of a bundle identifier: `com.example.field-service`.
package struct AppID: Hashable, Sendable {
    package let text: String

    /// Accepts 1 to 128 letters, digits, dots, hyphens and underscores. The first and the last character must be a letter or a
    /// digit.
    package init?(_ text: some StringProtocol) {
        let bytes = Array(text.utf8)
        guard (1...128).contains(bytes.count), let first = bytes.first, let last = bytes.last,
            Self.isAlphanumeric(first), Self.isAlphanumeric(last),
            bytes.allSatisfy({ Self.isAlphanumeric($0) || $0 == 0x2E || $0 == 0x2D || $0 == 0x5F })
        else { return nil }
        self.text = String(text)
    }

    private static func isAlphanumeric(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: false
        }
    }
}

extension AppID: CustomStringConvertible {
    package var description: String { text }
}
