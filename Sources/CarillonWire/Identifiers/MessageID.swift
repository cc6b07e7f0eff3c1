import CarillonBasics

/// The identifier of a message and of its envelope. It is part of the message's URL, and therefore a secret of the sender and the
/// receiver.
///
/// The identifier contains the envelope's position, with which the store finds the envelope without an index, and 128 random
/// bits, so that the identifier cannot be guessed (RFC 8030 section 8.3 requires at least 120). The position is masked with the
/// random bits, so that two identifiers have no visible common part.
package struct MessageID: Hashable, Sendable {
    package let position: Int64
    package let secret: Bytes16

    package init(position: Int64, secret: Bytes16) {
        self.position = position
        self.secret = secret
    }

    package init?(_ text: some StringProtocol) {
        guard text.utf8.count == 32, let bytes = Base64URL.decode(text), let secret = Bytes16(bytes.dropFirst(8)) else {
            return nil
        }
        let masked = bytes.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        self.secret = secret
        self.position = Int64(bitPattern: masked ^ secret.high)
        guard position > 0 else { return nil }
    }
}

extension MessageID: CustomStringConvertible {
    package var description: String {
        Base64URL.encode((UInt64(bitPattern: position) ^ secret.high).bigEndianBytes + secret.bytes)
    }
}
