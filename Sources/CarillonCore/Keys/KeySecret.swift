import CarillonBasics
package import CarillonWire

/// The text of an API key: `car_sender_<id>_<secret>`. The role in the text is for people only; the store determines the role.
package struct KeySecret: Sendable {
    package let id: KeyID
    package let text: String

    package var hash: SecretHash { SecretHash(of: text.utf8) }

    package init(role: KeyRole, id: KeyID, random: RandomSource) {
        self.id = id
        text = "car_\(role.rawValue)_\(id)_\(Hexadecimal.encode(random.bytes(24)))"
    }

    package init?(parsing text: some StringProtocol) {
        let parts = text.split(separator: "_", omittingEmptySubsequences: false)
        guard parts.count == 4, parts[0] == "car", KeyRole(rawValue: String(parts[1])) != nil, let id = KeyID(parts[2]),
            parts[3].utf8.count == 48
        else { return nil }
        self.id = id
        self.text = String(text)
    }
}
