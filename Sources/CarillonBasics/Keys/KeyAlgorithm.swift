/// The algorithm and curve of a key, as its file declares them.
package enum KeyAlgorithm: Equatable, Sendable {
    case p256, p384, p521, rsa, ed25519, other

    /// The algorithm with its article, for sentences in which "private key" follows.
    package var phrase: String {
        switch self {
        case .p256: "a P-256"
        case .p384: "a P-384"
        case .p521: "a P-521"
        case .rsa: "an RSA"
        case .ed25519: "an Ed25519"
        case .other: "another kind of"
        }
    }

    /// Reads an AlgorithmIdentifier (RFC 5280 section 4.1.1.2).
    init(identifier: DERElement) {
        let parts = identifier.children ?? []
        switch parts.first.map({ Array($0.content) }) ?? [] {
        case Self.ellipticCurve: self = parts.count > 1 ? Self(curve: parts[1]) : .other
        case Self.rsaEncryption: self = .rsa
        case Self.edwards: self = .ed25519
        default: self = .other
        }
    }

    /// Reads the object identifier of a curve.
    init(curve: DERElement) {
        switch Array(curve.content) {
        case [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07]: self = .p256
        case [0x2B, 0x81, 0x04, 0x00, 0x22]: self = .p384
        case [0x2B, 0x81, 0x04, 0x00, 0x23]: self = .p521
        default: self = .other
        }
    }

    /// Derives the curve from the number of bytes of a private key that does not name it.
    init(privateBytes: Int) {
        switch privateBytes {
        case 32: self = .p256
        case 48: self = .p384
        case 66: self = .p521
        default: self = .other
        }
    }

    /// 1.2.840.10045.2.1.
    private static let ellipticCurve: [UInt8] = [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01]
    /// 1.2.840.113549.1.1.1.
    private static let rsaEncryption: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01]
    /// 1.3.101.112.
    private static let edwards: [UInt8] = [0x2B, 0x65, 0x70]
}
