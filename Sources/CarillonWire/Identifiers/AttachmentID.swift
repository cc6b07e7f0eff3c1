import CarillonBasics

/// The server's name for an attachment: 36 hexadecimal digits, of which the first four name the home that keeps it. It cannot be guessed,
/// and alone it opens nothing.
package struct AttachmentID: Hashable, Sendable {
    /// The home; on one machine it is 0.
    package let home: UInt16
    package let value: Bytes16

    package init(home: UInt16 = 0, _ value: Bytes16) {
        self.home = home
        self.value = value
    }

    package init?(_ text: some StringProtocol) {
        guard text.utf8.count == Self.byteCount * 2, let bytes = Hexadecimal.decode(text) else { return nil }
        self.init(bytes)
    }

    package init?(_ bytes: [UInt8]) {
        guard bytes.count == Self.byteCount, let value = Bytes16(bytes.dropFirst(2)) else { return nil }
        home = UInt16(bytes[0]) << 8 | UInt16(bytes[1])
        self.value = value
    }

    package static let byteCount = 18

    package var bytes: [UInt8] { home.bigEndianBytes + value.bytes }

    package static func random(using generator: inout some RandomNumberGenerator) -> AttachmentID {
        AttachmentID(.random(using: &generator))
    }
}

extension AttachmentID: CustomStringConvertible {
    package var description: String { Hexadecimal.encode(bytes) }
}
