/// The encoding of a message body, which the receiver needs in order to decrypt the body. The server passes the body on unread.
package struct ContentCoding: Hashable, Sendable {
    package enum Name: String, CaseIterable, Sendable {
        /// RFC 8188 and RFC 8291: the body contains all parameters.
        case aes128gcm
        /// The draft that preceded these RFCs: salt and sender key are in headers.
        case aesgcm
        /// Not encrypted: the bytes that the sender wrote.
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

    /// Whether only the receiver can read the body, provided that the sender used the declared encoding.
    package var isEncrypted: Bool { name != .identity }
}
