/// How a message's body is encoded, as its receiver must know it to decrypt it. The server carries it and never
/// looks inside.
package struct ContentCoding: Hashable, Sendable {
    package enum Name: String, CaseIterable, Sendable {
        /// RFC 8188 and RFC 8291: everything is in the body.
        case aes128gcm
        /// The draft before it: salt and sender key travel as headers.
        case aesgcm
        /// Not encrypted: bytes as the sender wrote them.
        case identity
    }

    package var name: Name
    /// `aesgcm` only: the `Encryption` header, without quotes and padding.
    package var encryption: String?
    /// `aesgcm` only: the `Crypto-Key` header, without VAPID's key, quotes and padding.
    package var cryptoKey: String?

    package init(_ name: Name, encryption: String? = nil, cryptoKey: String? = nil) {
        self.name = name
        self.encryption = encryption
        self.cryptoKey = cryptoKey
    }

    /// Whether nobody but the receiver can read the body, if the sender did as it says.
    package var isEncrypted: Bool { name != .identity }
}
