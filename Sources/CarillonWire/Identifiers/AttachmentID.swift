import CarillonBasics

/// The server's identifier of an attachment: 36 hexadecimal digits. The identifier cannot be guessed, but it alone grants no
/// access. It does not contain a home.
package struct AttachmentID: Hashable, Sendable {
    /// The number in the first four digits. It is 0 in every identifier that a server creates.
    package let prefix: UInt16
    package let value: Bytes16

    package init(prefix: UInt16 = 0, _ value: Bytes16) {
        self.prefix = prefix
        self.value = value
    }

    package init?(_ text: some StringProtocol) {
        guard text.utf8.count == Self.byteCount * 2, let bytes = Hexadecimal.decode(text) else { return nil }
        self.init(bytes)
    }

    package init?(_ bytes: [UInt8]) {
        guard bytes.count == Self.byteCount, let value = Bytes16(bytes.dropFirst(2)) else { return nil }
        prefix = UInt16(bytes[0]) << 8 | UInt16(bytes[1])
        self.value = value
    }

    package static let byteCount = 18

    package var bytes: [UInt8] { prefix.bigEndianBytes + value.bytes }

    package static func random(using generator: inout some RandomNumberGenerator) -> AttachmentID {
        AttachmentID(.random(using: &generator))
    }
}

extension AttachmentID: CustomStringConvertible {
    package var description: String { Hexadecimal.encode(bytes) }
}
