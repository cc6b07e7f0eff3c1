package import CarillonWire
package import Crypto

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The key of one message and the nonces of its records. The key is derived by RFC 8291 section 3.4 for `aes128gcm`, and by
/// the earlier draft-ietf-webpush-encryption-04 section 4.2 for `aesgcm`.
package struct ContentKey {
    package static let saltBytes = 16
    package static let authSecretBytes = 16
    package static let tagBytes = 16

    private let key: SymmetricKey
    private let baseNonce: [UInt8]

    /// - Parameter secret: The shared secret of the two key pairs. `receiver` and `sender` are uncompressed points of 65
    ///   bytes.
    package init(
        _ name: ContentCoding.Name, secret: SharedSecret, authSecret: [UInt8], receiver: [UInt8], sender: [UInt8],
        salt: [UInt8]
    ) {
        let inputInfo: [UInt8]
        let context: [UInt8]
        switch name {
        case .aesgcm:
            inputInfo = Self.info("auth")
            context = Array("P-256\0".utf8) + [0, 65] + receiver + [0, 65] + sender
        case .aes128gcm, .identity:
            inputInfo = Array("WebPush: info\0".utf8) + receiver + sender
            context = []
        }
        let input = secret.hkdfDerivedSymmetricKey(
            using: SHA256.self, salt: authSecret, sharedInfo: inputInfo, outputByteCount: 32)
        key = HKDF<SHA256>.deriveKey(
            inputKeyMaterial: input, salt: salt, info: Self.info(name.rawValue) + context, outputByteCount: 16)
        let nonce = HKDF<SHA256>.deriveKey(
            inputKeyMaterial: input, salt: salt, info: Self.info("nonce") + context, outputByteCount: 12)
        baseNonce = nonce.withUnsafeBytes { Array($0) }
    }

    private static func info(_ name: String) -> [UInt8] { Array("Content-Encoding: \(name)\0".utf8) }

    package func seal(_ record: [UInt8], number: UInt64) throws -> [UInt8] {
        let box = try AES.GCM.seal(record, using: key, nonce: nonce(number))
        return Array(box.ciphertext + box.tag)
    }

    /// Decrypts a record. Returns nil if the record was changed or was encrypted with another key.
    package func open(_ record: ArraySlice<UInt8>, number: UInt64) -> [UInt8]? {
        guard let nonce = try? nonce(number),
            let box = try? AES.GCM.SealedBox(
                nonce: nonce, ciphertext: record.dropLast(Self.tagBytes), tag: record.suffix(Self.tagBytes)),
            let content = try? AES.GCM.open(box, using: key)
        else { return nil }
        return Array(content)
    }

    /// RFC 8188 section 2.3: the number of the record is added to the nonce without carry.
    private func nonce(_ number: UInt64) throws -> AES.GCM.Nonce {
        var nonce = baseNonce
        for (index, byte) in number.bigEndianBytes.enumerated() { nonce[4 + index] ^= byte }
        return try AES.GCM.Nonce(data: nonce)
    }
}
