/// The content of a block or of a file, recognized by its structure and not by its label.
package enum KeyContent: Equatable, Sendable {
    /// RFC 5280 section 4.1.
    case certificate
    /// A PKCS #8, SEC 1 or PKCS #1 key. `secret` is equal for all forms of one key.
    case privateKey(KeyAlgorithm, secret: [UInt8], label: String)
    /// A key that needs a passphrase.
    case encryptedKey
    case publicKey(KeyAlgorithm)
    case certificateRequest
    /// A PKCS #12 file.
    case archive
    /// The curve parameters that can precede a key, without a key.
    case parameters
    case unknown

    /// - Parameter bytes: DER. Bytes after the first element, such as OpenSSL's trust settings, are ignored.
    init(der bytes: [UInt8]) {
        guard let root = DERElement(bytes[...]) else { self = .unknown; return }
        if root.tag == DERElement.objectIdentifier { self = .parameters; return }
        guard root.tag == DERElement.sequence, let parts = root.children else { self = .unknown; return }
        self = Self.ofSequence(root, parts)
    }

    /// The label in strict PEM; nil for content that can have several labels.
    package var label: String? {
        switch self {
        case .certificate: "CERTIFICATE"
        case .privateKey(_, _, let label): label
        case .encryptedKey: "ENCRYPTED PRIVATE KEY"
        default: nil
        }
    }

    /// The name of the content in messages; nil if the content is not recognized.
    package var phrase: String? {
        switch self {
        case .certificate: "a certificate"
        case .privateKey(let algorithm, _, _): "\(algorithm.phrase) private key"
        case .encryptedKey: "an encrypted private key"
        case .publicKey(let algorithm): "\(algorithm.phrase) public key"
        case .certificateRequest: "a certificate request"
        case .archive: "a .p12 file"
        case .parameters: "the parameters of a key without the key"
        case .unknown: nil
        }
    }

    private static func ofSequence(_ root: DERElement, _ parts: [DERElement]) -> KeyContent {
        typealias Tag = DERElement
        let tags = parts.map(\.tag)
        if tags == [Tag.sequence, Tag.sequence, Tag.bitString] {
            return ofSigned(parts[0].children?.map(\.tag) ?? [])
        }
        if tags == [Tag.sequence, Tag.bitString] { return .publicKey(KeyAlgorithm(identifier: parts[0])) }
        if tags == [Tag.sequence, Tag.octetString] { return .encryptedKey }
        if tags == [Tag.integer, Tag.integer] { return .publicKey(.rsa) }
        if tags.starts(with: [Tag.integer, Tag.sequence, Tag.octetString]) {
            let algorithm = KeyAlgorithm(identifier: parts[1])
            return .privateKey(algorithm, secret: secret(in: parts[2].content, of: algorithm), label: "PRIVATE KEY")
        }
        if tags.starts(with: [Tag.integer, Tag.octetString]) {
            let curve = parts.first { $0.tag == Tag.context0 }.flatMap { DERElement($0.content) }
            let scalar = Array(parts[1].content)
            let algorithm = curve.map { KeyAlgorithm(curve: $0) } ?? KeyAlgorithm(privateBytes: scalar.count)
            return .privateKey(algorithm, secret: scalar, label: "EC PRIVATE KEY")
        }
        if tags.count >= 9, tags.allSatisfy({ $0 == Tag.integer || $0 == Tag.sequence }) {
            return .privateKey(.rsa, secret: Array(root.whole), label: "RSA PRIVATE KEY")
        }
        if tags.starts(with: [Tag.integer, Tag.sequence]) {
            return Array(parts[0].content) == [3] ? .archive : .parameters
        }
        return .unknown
    }

    /// Distinguishes certificates from certificate requests by their members. A certificate has a tagged version, or a sequence
    /// of validity times as the fourth member. A request has a version, a name, a key and attributes.
    private static func ofSigned(_ members: [UInt8]) -> KeyContent {
        if members.first == DERElement.context0 { return .certificate }
        if members.count >= 6, members[3] == DERElement.sequence { return .certificate }
        return (3...4).contains(members.count) ? .certificateRequest : .unknown
    }

    /// Returns the scalar of the SEC 1 key inside a PKCS #8 key of an elliptic curve (RFC 5915). For other keys, returns all
    /// bytes.
    private static func secret(in key: ArraySlice<UInt8>, of algorithm: KeyAlgorithm) -> [UInt8] {
        guard algorithm != .rsa, let members = DERElement(key)?.children, members.count > 1,
            members[1].tag == DERElement.octetString
        else { return Array(key) }
        return Array(members[1].content)
    }
}
