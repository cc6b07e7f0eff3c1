import CarillonBasics
package import CarillonWire

/// The place up to which a binding received its inbox. The response to a poll contains a position, and the next poll returns it.
/// For the device a position is an opaque text.
package struct InboxPosition: Equatable, Sendable {
    /// Identifies the history of the store. A store that is restored from a backup has another history.
    package var history: Int64
    package var binding: BindingSerial
    /// The place of the last envelope that was sent; 0 before the first.
    package var place: Int64
    /// Whether only updates were sent up to this place. The position then acknowledges no other envelopes.
    package var isOfUpdates: Bool

    package init(history: Int64, binding: BindingSerial, place: Int64, isOfUpdates: Bool = false) {
        self.history = history
        self.binding = binding
        self.place = place
        self.isOfUpdates = isOfUpdates
    }
}

package struct InboxPositions: Sendable {
    private let sealer: SecretSealer

    package init(sealer: SecretSealer) { self.sealer = sealer }

    package func seal(_ position: InboxPosition, of device: DeviceSerial) throws -> String {
        let only: Int64 = position.isOfUpdates ? 1 : 0
        let plain = [position.history, position.binding.rawValue, position.place, only].flatMap(\.bigEndianBytes)
        return Base64URL.encode(try sealer.seal(plain, for: device.rawValue))
    }

    /// - Throws: ``ErrorCode/positionInvalid`` for a text that was not sealed by this server for this device.
    package func open(_ text: String, of device: DeviceSerial) throws(Refusal) -> InboxPosition {
        guard text.utf8.count <= Self.mostCharacters, let sealed = Base64URL.decode(text),
            let plain = sealer.open(sealed, for: device.rawValue), plain.count == 32
        else {
            throw Refusal(
                .positionInvalid, "The position is not one that this device was given; poll without one to begin anew.")
        }
        func number(_ index: Int) -> Int64 {
            plain[8 * index..<8 * index + 8].reduce(0) { $0 << 8 | Int64($1) }
        }
        return InboxPosition(
            history: number(0), binding: BindingSerial(number(1)), place: number(2), isOfUpdates: number(3) != 0)
    }

    private static let mostCharacters = 128
}
