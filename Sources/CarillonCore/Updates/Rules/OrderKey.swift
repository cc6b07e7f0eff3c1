/// An order key in a set or as the key of a dictionary. As in a store, order keys are equal if their bytes are equal. Texts
/// that are only canonically equivalent are different order keys.
package struct OrderKey: Hashable, Sendable {
    package let text: String

    package init(_ text: String) { self.text = text }
}

extension OrderKey {
    package static func == (one: Self, other: Self) -> Bool { one.text.utf8.elementsEqual(other.text.utf8) }

    package func hash(into hasher: inout Hasher) { for byte in text.utf8 { hasher.combine(byte) } }
}
