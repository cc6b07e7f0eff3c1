import CarillonBasics

/// The server's identifier of an item subscription: 32 hexadecimal digits. It is not a secret.
package struct SubscriptionID: Hashable, Sendable {
    package let value: Bytes16

    package init(_ value: Bytes16) { self.value = value }

    package init?(_ text: some StringProtocol) {
        guard let bytes = Hexadecimal.decode(text), let value = Bytes16(bytes) else { return nil }
        self.value = value
    }

    package static func random(using generator: inout some RandomNumberGenerator) -> SubscriptionID {
        SubscriptionID(.random(using: &generator))
    }
}

extension SubscriptionID: CustomStringConvertible {
    package var description: String { Hexadecimal.encode(value.bytes) }
}
