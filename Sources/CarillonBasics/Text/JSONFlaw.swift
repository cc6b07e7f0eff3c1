/// Why a text cannot be read here although other JSON readers accept it.
package enum JSONFlaw: Equatable, Sendable {
    /// A text has half of a surrogate pair, such as `\ud83d` without the half that follows.
    case halfPair
    /// Objects and arrays are nested deeper than the limit.
    case tooDeep

    /// Returns nil if the text is not one JSON object, or contains a number that is too large for `Double`.
    ///
    /// - Parameter text: A text that cannot be read as a ``JSONValue``.
    package init?(inObject text: [UInt8]) {
        let flaw = text.withUnsafeBufferPointer { bytes -> JSONFlaw? in
            var reader = JSONReader(text: bytes, passesHalfPairs: true)
            guard reader.readWhole({ $0.readMembers() }) != nil else { return nil }
            return reader.hasHalfPair ? .halfPair : .tooDeep
        }
        guard let flaw else { return nil }
        self = flaw
    }
}
