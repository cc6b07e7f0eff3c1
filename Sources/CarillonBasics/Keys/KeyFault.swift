/// Why a file or a text does not contain the needed key or certificates.
package enum KeyFault: Error, Equatable, Sendable {
    case empty
    /// There is no `-----BEGIN`, and the file is not DER either.
    case noBlock
    case damaged(label: String, PEMBlock.Damage)
    /// The block is complete, but its content does not match its label.
    case undecodable(label: String)
    /// The file contains something else.
    case found(String)
    case encrypted
    case keysDiffer(Int)

    /// Returns a sentence that names the content found and the content needed. The sentence contains no part of a key.
    ///
    /// - Parameters:
    ///   - subject: The source of the content, such as "The token key".
    ///   - need: The required content, such as "a P-256 private key in PEM form".
    package func sentence(_ subject: String, need: String) -> String {
        switch self {
        case .empty: "\(subject) is empty; it must be \(need)."
        case .noBlock: "\(subject) has no line that starts with \"-----BEGIN\"; it must be \(need)."
        case .damaged(let label, let damage): "\(subject) \(Self.predicate(damage, label)); it must be \(need)."
        case .undecodable(let label):
            "\(subject) is damaged: \(Self.place(label)) is complete, but cannot be decoded; it must be \(need)."
        case .found(let what): "\(subject) is \(what); it must be \(need)."
        case .encrypted:
            "\(subject) is encrypted; it must be \(need) without a passphrase. Decrypt it with \"openssl pkey\"."
        case .keysDiffer(let count): "\(subject) has \(count) different keys; it must be \(need), and only one."
        }
    }

    /// Describes the damage of a block, as a predicate.
    private static func predicate(_ damage: PEMBlock.Damage, _ label: String) -> String {
        switch damage {
        case .labelUnreadable: "is damaged: a line that starts with \"-----BEGIN\" has no label with five hyphens after it"
        case .labelUnknown: "has a block with a label that is not a key's or a certificate's"
        case .endMissing: "is cut off: the line \"-----END \(label)-----\" is missing"
        case .endDiffers(let end):
            "is damaged: \"-----BEGIN \(label)-----\" is followed by \"-----END \(end)-----\", which has another label"
        case .characterInvalid(let scalar):
            "is damaged: \(place(label)) has the character \(phrase(scalar)), which is not base64"
        case .lengthInvalid(let count):
            "is cut off or damaged: \(place(label)) has \(count) characters of base64, which is not a multiple of 4"
        case .paddingInvalid: "is damaged: \(place(label)) has \"=\" at a place other than the end of the base64"
        case .empty: "is damaged: \(place(label)) is empty"
        case .cutOff(let bytes, let declared): "is cut off: \(place(label)) has \(bytes) bytes of \(declared)"
        }
    }

    private static func place(_ label: String) -> String { label.isEmpty ? "the file" : "the block \"\(label)\"" }

    /// Returns a character in quotes. A character that cannot be printed, or that looks like another, is followed by its Unicode
    /// number.
    package static func phrase(_ scalar: Unicode.Scalar) -> String {
        let number = "U+" + String(repeating: "0", count: max(0, 4 - hexadecimal(scalar).count)) + hexadecimal(scalar)
        if scalar.isASCII { return (0x21...0x7E).contains(scalar.value) ? "\"\(scalar)\"" : number }
        return scalar.properties.isWhitespace || !scalar.properties.isGraphemeBase ? number : "\"\(scalar)\" (\(number))"
    }

    private static func hexadecimal(_ scalar: Unicode.Scalar) -> String {
        String(scalar.value, radix: 16, uppercase: true)
    }
}
