import CarillonBasics

/// What a vendor's push service calls one install of one app. Its length is the vendor's affair.
package struct PushToken: Hashable, Sendable {
    package static let longestBytes = 512

    package let bytes: [UInt8]

    /// Reads hexadecimal digits of either case.
    ///
    /// - Throws: Why not; never with a part of the token.
    package init(hexadecimal text: some StringProtocol) throws(Refusal) {
        guard !text.isEmpty else { throw Self.refusal("is empty") }
        guard text.utf8.count <= 2 * Self.longestBytes else {
            throw Self.refusal("is longer than \(2 * Self.longestBytes) digits")
        }
        guard text.utf8.allSatisfy({ Hexadecimal.value(of: $0) != nil }) else {
            throw Self.refusal("has characters that are not hexadecimal digits, such as spaces or brackets")
        }
        guard let bytes = Hexadecimal.decode(text) else { throw Self.refusal("has an odd number of digits") }
        self.bytes = bytes
    }

    /// As it was stored; nil for none.
    package init?(stored bytes: [UInt8]) {
        guard (1...Self.longestBytes).contains(bytes.count) else { return nil }
        self.bytes = bytes
    }

    /// In lower case.
    package var hexadecimal: String { Hexadecimal.encode(bytes) }

    private static func refusal(_ why: String) -> Refusal {
        Refusal(
            .pushTokenInvalid,
            "The push token \(why); it must be the bytes that the app received from the system, as hexadecimal digits.")
    }
}

extension PushToken: CustomStringConvertible {
    /// Nothing of it: whoever has a token and a key can push to the device.
    package var description: String { "a push token of \(bytes.count) bytes" }
}
