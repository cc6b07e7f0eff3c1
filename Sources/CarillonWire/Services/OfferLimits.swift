/// The limits of what a device offers, for the server and for the client library.
package enum OfferLimits {
    /// The number of versions of services.
    package static let services = 64
    /// The bytes of the app's name, in UTF-8.
    package static let nameBytes = 128
    /// The bytes of the app's version, in UTF-8.
    package static let versionBytes = 64
    /// The bytes of the app's picture.
    package static let iconBytes = 32 << 10

    /// Whether bytes are a PNG file: the first eight are its signature (PNG, third edition, section 5.2).
    package static func isPNG(_ bytes: some Collection<UInt8>) -> Bool {
        bytes.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A] as [UInt8])
    }

    /// Whether a text can be the name or the version of an app: it is not empty, and has no control characters.
    package static func isText(_ text: String, upTo bytes: Int) -> Bool {
        (1...bytes).contains(text.utf8.count)
            && !text.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x7F }
    }
}
