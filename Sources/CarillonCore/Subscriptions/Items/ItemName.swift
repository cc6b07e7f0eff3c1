/// What an item is called within its app: 1 to 128 bytes of UTF-8 without control characters.
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
