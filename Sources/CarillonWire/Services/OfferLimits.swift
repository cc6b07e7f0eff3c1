/// The limits of a device's service offers, for the server and the client library.
package enum OfferLimits {
    /// The largest number of offered service versions.
    package static let services = 64
    /// The longest name of an app, in bytes of UTF-8.
    package static let nameBytes = 128
    /// The longest version of an app, in bytes of UTF-8.
    package static let versionBytes = 64
    /// The largest icon of an app, in bytes.
    package static let iconBytes = 32 << 10

    /// Whether bytes are a PNG file: the first eight are its signature (PNG, third edition, section 5.2).
    package static func isPNG(_ bytes: some Collection<UInt8>) -> Bool {
        bytes.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A] as [UInt8])
    }

    /// Whether a text can be the name or the version of an app. It must not be empty or contain control characters.
    package static func isText(_ text: String, upTo bytes: Int) -> Bool {
        (1...bytes).contains(text.utf8.count)
            && !text.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x7F }
    }
}
