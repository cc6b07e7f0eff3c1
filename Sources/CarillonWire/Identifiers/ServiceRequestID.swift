import CarillonBasics

/// A consumer's identifier of one service request: 32 random hexadecimal digits.
package struct ServiceRequestID: Hashable, Sendable {
    package let value: Bytes16

    package init(_ value: Bytes16) { self.value = value }

    package init?(_ text: some StringProtocol) {
        guard let bytes = Hexadecimal.decode(text), let value = Bytes16(bytes) else { return nil }
        self.value = value
    }

    package static func random(using generator: inout some RandomNumberGenerator) -> ServiceRequestID {
        ServiceRequestID(.random(using: &generator))
    }
}

extension ServiceRequestID: CustomStringConvertible {
    package var description: String { Hexadecimal.encode(value.bytes) }
}
