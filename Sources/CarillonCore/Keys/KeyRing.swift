import Crypto

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A key that seals tokens and secrets, as the store has it: wrapped by a key that is stored elsewhere, or plain.
package struct StoredTokenKey: Equatable, Sendable {
    package var id: UInt8
    package var bytes: [UInt8]
    package var isWrapped: Bool

    package init(id: UInt8, bytes: [UInt8], isWrapped: Bool) {
        self.id = id
        self.bytes = bytes
        self.isWrapped = isWrapped
    }
}

/// Stores the keys that seal tokens and secrets. Methods that write are atomic and durable, as ``Store`` describes.
package protocol KeyRingStore: Sendable {
    /// Returns the sealing keys, the current one first; empty before the first call of ``replaceKeyRing(_:with:)``.
    func keyRing() async throws -> [StoredTokenKey]
    /// Compares the key ring with `before`, and replaces it if both are equal, in one transaction. The replaced keys are erased from the
    /// disk.
    ///
    /// - Returns: Whether the key ring was replaced. Of concurrent calls with one `before`, one returns true.
    func replaceKeyRing(_ before: [StoredTokenKey], with after: [StoredTokenKey]) async throws -> Bool
}

/// The key in an operator's wrapping key file, which wraps the key ring. Sealed data cannot be opened with a copy of the database
/// alone.
package struct WrappingKey: Sendable {
    package static let byteCount = 32
    private let key: SymmetricKey

    /// - Parameter bytes: ``byteCount`` bytes.
    package init(bytes: [UInt8]) {
        precondition(bytes.count == Self.byteCount, "A wrapping key must have 32 bytes.")
        key = HKDF<SHA256>.deriveKey(
            inputKeyMaterial: SymmetricKey(data: bytes), info: Array("carillon key ring".utf8), outputByteCount: 32)
    }

    fileprivate func wrap(_ token: TokenKey, _ random: RandomSource) throws -> [UInt8] {
        let box = try AES.GCM.seal(
            token.bytes, using: key, nonce: AES.GCM.Nonce(data: random.bytes(12)), authenticating: [token.id])
        return Array(box.nonce) + Array(box.ciphertext) + Array(box.tag)
    }

    fileprivate func unwrap(_ stored: StoredTokenKey) -> [UInt8]? {
        guard let box = try? AES.GCM.SealedBox(combined: stored.bytes) else { return nil }
        return (try? AES.GCM.open(box, using: key, authenticating: [stored.id])).map(Array.init)
    }
}

/// The reason why the key ring cannot be opened.
package enum KeyRingFault: Error, Equatable, Sendable {
    /// The key ring is wrapped, and no wrapping key file was named.
    case keyFileMissing
    /// The key ring was wrapped with the key of another file.
    case keyFileWrong

    /// The message for the operator.
    package var sentence: String {
        switch self {
        case .keyFileMissing:
            "the keys of this data directory are encrypted with a wrapping key: set its file with --key-file (or CARILLON_KEY_FILE)"
        case .keyFileWrong:
            "the keys of this data directory are encrypted with the key of another wrapping key file: set that file with --key-file (or CARILLON_KEY_FILE)"
        }
    }
}

package enum KeyRing {
    /// Returns the sealing keys, the current one first. Makes a key if the store has no sealing key. With a wrapping key, plain
    /// keys are wrapped from now on.
    ///
    /// - Throws: ``KeyRingFault``.
    package static func open(
        _ store: any KeyRingStore, wrappedBy wrapping: WrappingKey?, _ random: RandomSource
    ) async throws -> [TokenKey] {
        while true {
            let stored = try await store.keyRing()
            let keys =
                stored.isEmpty ? [TokenKey(id: 1, bytes: random.bytes(TokenKey.byteCount))] : try open(stored, wrapping)
            if !stored.isEmpty, wrapping == nil || stored.allSatisfy(\.isWrapped) { return keys }
            let after = try keys.map { key in
                guard let wrapping else { return StoredTokenKey(id: key.id, bytes: key.bytes, isWrapped: false) }
                return StoredTokenKey(id: key.id, bytes: try wrapping.wrap(key, random), isWrapped: true)
            }
            if try await store.replaceKeyRing(stored, with: after) { return keys }
        }
    }

    private static func open(_ stored: [StoredTokenKey], _ wrapping: WrappingKey?) throws -> [TokenKey] {
        try stored.map { key in
            guard key.isWrapped else { return TokenKey(id: key.id, bytes: key.bytes) }
            guard let wrapping else { throw KeyRingFault.keyFileMissing }
            guard let bytes = wrapping.unwrap(key) else { throw KeyRingFault.keyFileWrong }
            return TokenKey(id: key.id, bytes: bytes)
        }
    }
}
