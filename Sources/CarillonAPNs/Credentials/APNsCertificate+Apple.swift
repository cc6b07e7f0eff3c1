import NIOSSL

/// The data that only Apple's push certificates have. It is found by its bytes, because nothing else of the certificate is
/// needed.
extension APNsCertificate {
    /// The bundle ID in the certificate's subject (`UID`); nil if the subject has no bundle ID.
    package var bundleID: String? {
        guard let bytes = ownBytes, let place = Self.place(of: Self.userID, in: bytes) else { return nil }
        // A text is encoded as a tag, a length, which is short here, and bytes.
        guard let tag = bytes.dropFirst(place).first, [0x0C, 0x13, 0x16].contains(tag),
            let length = bytes.dropFirst(place + 1).first, length < 0x80
        else { return nil }
        let text = bytes.dropFirst(place + 2).prefix(Int(length))
        return text.count == Int(length) ? String(decoding: text, as: UTF8.self) : nil
    }

    /// Whether the certificate contains the APNs topic anywhere, as a certificate for several APNs topics does.
    package func mentions(_ topic: String) -> Bool {
        ownBytes.map { Self.place(of: Array(topic.utf8), in: $0) != nil } ?? false
    }

    /// Whether the certificate is marked as valid for the sandbox.
    package var isForSandbox: Bool { ownBytes.map { Self.place(of: Self.sandbox, in: $0) != nil } ?? false }
    /// Whether the certificate is marked as valid for production.
    package var isForProduction: Bool { ownBytes.map { Self.place(of: Self.production, in: $0) != nil } ?? false }

    private var ownBytes: [UInt8]? { chain.first.flatMap { try? $0.toDERBytes() } }

    /// The object identifier 0.9.2342.19200300.100.1.1.
    private static let userID: [UInt8] = [
        0x06, 0x0A, 0x09, 0x92, 0x26, 0x89, 0x93, 0xF2, 0x2C, 0x64, 0x01, 0x01,
    ]
    /// The object identifier 1.2.840.113635.100.6.3.1.
    private static let sandbox: [UInt8] = [0x06, 0x0A, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x63, 0x64, 0x06, 0x03, 0x01]
    /// The object identifier 1.2.840.113635.100.6.3.2.
    private static let production: [UInt8] = [0x06, 0x0A, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x63, 0x64, 0x06, 0x03, 0x02]

    /// Returns the index after the first occurrence of the bytes.
    private static func place(of bytes: [UInt8], in all: [UInt8]) -> Int? {
        guard all.count >= bytes.count else { return nil }
        for start in 0...(all.count - bytes.count) where all[start] == bytes[0] {
            if all[start..<start + bytes.count].elementsEqual(bytes) { return start + bytes.count }
        }
        return nil
    }
}
