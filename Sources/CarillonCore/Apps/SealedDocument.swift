/// A text that operators may read, and a secret that is sealed with the key ring, as the bytes of one document.
package struct SealedDocument: Equatable, Sendable {
    /// The text contains no NUL character.
    package var text: String
    package var sealed: [UInt8]

    package init(text: String, sealed: [UInt8]) {
        self.text = text
        self.sealed = sealed
    }

    /// Returns nil if the bytes do not have both parts.
    package init?(_ bytes: [UInt8]) {
        guard let end = bytes.firstIndex(of: 0) else { return nil }
        text = String(decoding: bytes[..<end], as: UTF8.self)
        sealed = Array(bytes[(end + 1)...])
    }

    /// The text, a zero byte, and the sealed secret.
    package var bytes: [UInt8] { Array(text.utf8) + [0] + sealed }
}
