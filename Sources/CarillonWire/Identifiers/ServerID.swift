import CarillonBasics

/// A server's name for itself, made with its store and kept for good: 32 hexadecimal digits. It is not a secret.
package struct ServerID: Hashable, Sendable {
    package let value: Bytes16

    package init(_ value: Bytes16) { self.value = value }
}

extension ServerID: CustomStringConvertible {
    package var description: String { Hexadecimal.encode(value.bytes) }
}
