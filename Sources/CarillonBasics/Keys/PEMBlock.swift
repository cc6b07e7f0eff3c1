/// One block of a file of keys and certificates (RFC 7468), or a whole file in DER, whose label is empty.
package struct PEMBlock: Equatable, Sendable {
    /// Why a block cannot be decoded.
    package enum Damage: Equatable, Sendable {
        /// The text after `-----BEGIN` is not a label and five hyphens.
        case labelUnreadable
        /// The label has characters that do not occur in labels of keys or certificates. An example is `OpenVPN Static key V1`.
        case labelUnknown
        /// There is no line `-----END` before the next block.
        case endMissing
        /// The line `-----END` has another label.
        case endDiffers(String)
        case characterInvalid(Unicode.Scalar)
        /// The number of characters of base64, which must be a multiple of four.
        case lengthInvalid(Int)
        /// A "=" is not at the end of the base64.
        case paddingInvalid
        case empty
        /// The content ends before the length that its first bytes state.
        case cutOff(bytes: Int, declared: Int)
    }

    package var label: String
    /// The lines before the base64, such as the line `DEK-Info: AES-256-CBC,…` in a key that OpenSSL encrypted.
    package var headers: [String] = []
    package var bytes: [UInt8] = []
    package var damage: Damage?
    /// Whether other text precedes `-----BEGIN` on its line, so that the text may only name a block.
    package var isInText = false

    package init(label: String, headers: [String] = [], bytes: [UInt8] = [], damage: Damage? = nil) {
        self.label = label
        self.headers = headers
        self.bytes = bytes
        self.damage = damage
    }

    /// The block in strict PEM, with 64 characters of base64 in each line.
    package var text: String {
        var lines = ["-----BEGIN \(label)-----"]
        if !headers.isEmpty { lines += headers + [""] }
        let base64 = Array(Base64URL.encode(bytes).utf8).map { character -> UInt8 in
            switch character {
            case UInt8(ascii: "-"): UInt8(ascii: "+")
            case UInt8(ascii: "_"): UInt8(ascii: "/")
            default: character
            }
        }
        let padded = base64 + [UInt8](repeating: UInt8(ascii: "="), count: (4 - base64.count % 4) % 4)
        for start in stride(from: 0, to: padded.count, by: 64) {
            lines.append(String(decoding: padded[start..<min(start + 64, padded.count)], as: UTF8.self))
        }
        lines.append("-----END \(label)-----")
        return lines.joined(separator: "\n") + "\n"
    }
}
