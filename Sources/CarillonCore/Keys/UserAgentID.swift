import CarillonBasics

/// The secret of an anonymous device: Mozilla's user agent identifier, 32 hexadecimal digits, which the client sends in each
/// `hello`.
package struct UserAgentID: Equatable, Sendable {
    package let text: String

    package var hash: SecretHash { SecretHash(of: text.utf8) }

    package init(random: RandomSource) { text = Hexadecimal.encode(random.bytes(16)) }

    package init?(parsing text: some StringProtocol) {
        guard text.utf8.count == 32, let bytes = Hexadecimal.decode(text) else { return nil }
        self.text = Hexadecimal.encode(bytes)
    }
}
