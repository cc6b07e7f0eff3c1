/// A key that seals channel tokens.
package struct TokenKey: Equatable, Sendable {
    package static let byteCount = 32

    package var id: UInt8
    package var bytes: [UInt8]

    package init(id: UInt8, bytes: [UInt8]) {
        self.id = id
        self.bytes = bytes
    }
}
