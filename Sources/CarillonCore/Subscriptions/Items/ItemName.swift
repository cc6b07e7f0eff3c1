/// The name of an item within its app: 1 to 128 bytes of UTF-8 without control characters. Names are equal if their bytes are
/// equal, as in rules and in the store. Unicode equivalence is not considered.
package struct ItemName: Hashable, Sendable {
    package let text: String

    package static let longestBytes = 128

    package init?(_ text: some StringProtocol) {
        guard (1...Self.longestBytes).contains(text.utf8.count), text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            return nil
        }
        self.text = String(text)
    }
}

extension ItemName {
    package static func == (one: Self, other: Self) -> Bool { one.text.utf8.elementsEqual(other.text.utf8) }

    package func hash(into hasher: inout Hasher) { for byte in text.utf8 { hasher.combine(byte) } }
}

extension ItemName: CustomStringConvertible {
    package var description: String { text }
}

package struct ItemKey: Hashable, Sendable {
    package var app: AppSerial
    package var name: ItemName

    package init(app: AppSerial, name: ItemName) {
        self.app = app
        self.name = name
    }
}
