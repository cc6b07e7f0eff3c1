import CarillonBasics

/// The server's identifier of one install of one app: 32 hexadecimal digits. It is not a secret.
package struct DeviceID: Hashable, Sendable {
    package let value: Bytes16

    package init(_ value: Bytes16) { self.value = value }

    package init?(_ text: some StringProtocol) {
        guard let bytes = Hexadecimal.decode(text), let value = Bytes16(bytes) else { return nil }
        self.value = value
    }
}

extension DeviceID: CustomStringConvertible {
    package var description: String { Hexadecimal.encode(value.bytes) }
}
