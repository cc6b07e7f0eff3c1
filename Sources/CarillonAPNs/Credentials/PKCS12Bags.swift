/// Finds out which kinds of entries a PKCS #12 file (RFC 7292) can contain, without the passphrase. Entries ("bags") are
/// marked by object identifiers, and keys are in a part that is not encrypted as a whole.
enum PKCS12Bags {
    /// The object identifier 1.2.840.113549.1.12.10.1. Its children 1 and 2 are keys, and 3 is a certificate.
    private static let bag: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x0C, 0x0A, 0x01]
    /// The object identifier 1.2.840.113549.1.7.6: a part that is encrypted as a whole, which is usual for certificates.
    private static let encryptedPart: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x06]

    static func mayHoldKey(_ file: [UInt8]) -> Bool { contains(file, bag + [1]) || contains(file, bag + [2]) }

    static func mayHoldCertificate(_ file: [UInt8]) -> Bool { contains(file, bag + [3]) || contains(file, encryptedPart) }

    private static func contains(_ file: [UInt8], _ pattern: [UInt8]) -> Bool {
        guard file.count >= pattern.count else { return false }
        return (0...file.count - pattern.count).contains { file[$0..<$0 + pattern.count].elementsEqual(pattern) }
    }
}
