import CarillonBasics

/// A server's identifier: 32 hexadecimal digits. It is created with the store and never changes. It is not a secret.
package struct ServerID: Hashable, Sendable {
    package let value: Bytes16

    package init(_ value: Bytes16) { self.value = value }
}

extension ServerID: CustomStringConvertible {
    package var description: String { Hexadecimal.encode(value.bytes) }
}
