/// Reads items and dictionaries of structured fields (RFC 9651). Parameters are read and ignored, because no field that Carillon
/// uses gives them a meaning.
///
/// Values are returned in their written form, such as `?1`, `42` or `:AAEC:`. The caller checks that a value has the type of its
/// field.
package struct StructuredField {
    private var rest: Substring.UTF8View

    private init(_ text: String) {
        rest = text[...].utf8
        skip(Self.isSpace)
    }

    /// Returns the value of a field that is one item; nil if the field is malformed.
    package static func item(_ text: String) -> String? {
        var field = StructuredField(text)
        guard let item = field.takeItem() else { return nil }
        field.skip(isSpace)
        return field.rest.isEmpty ? item : nil
    }

    /// Returns the members of a dictionary, with keys in lower case. Returns nil if the field is malformed or a member is a list.
    package static func dictionary(_ text: String) -> [(key: String, item: String)]? {
        var field = StructuredField(text)
        var members: [(key: String, item: String)] = []
        while !field.rest.isEmpty {
            guard let key = field.takeKey() else { return nil }
            if field.take("=") {
                guard let item = field.takeItem() else { return nil }
                members.append((key, item))
            } else {
                guard field.skipParameters() else { return nil }
                members.append((key, "?1"))
            }
            field.skip(isWhiteSpace)
            if field.rest.isEmpty { break }
            guard field.take(",") else { return nil }
            field.skip(isWhiteSpace)
            guard !field.rest.isEmpty else { return nil }
        }
        return members
    }

    // MARK: Parts

    /// Consumes a value and its parameters.
    private mutating func takeItem() -> String? {
        guard let item = takeBareItem(), skipParameters() else { return nil }
        return item
    }

    private mutating func skipParameters() -> Bool {
        while take(";") {
            skip(Self.isSpace)
            guard takeKey() != nil else { return false }
            if take("="), takeBareItem() == nil { return false }
        }
        return true
    }

    private mutating func takeKey() -> String? {
        guard let first = rest.first, Self.isLetter(first) || first == UInt8(ascii: "*") else { return nil }
        return takeText(Self.isOfKey).lowercased()
    }

    private mutating func takeBareItem() -> String? {
        let start = rest
        if rest.starts(with: "%\"".utf8) { rest = rest.dropFirst() }
        if take("\"") {
            guard skipString() else { return nil }
            return Self.text(start[..<rest.startIndex])
        }
        if take(":") {
            skip { $0 != UInt8(ascii: ":") }
            guard take(":") else { return nil }
            return Self.text(start[..<rest.startIndex])
        }
        let item = takeText(Self.isOfBareItem)
        return item.isEmpty ? nil : item
    }

    /// Skips the rest of a string after its first quote.
    private mutating func skipString() -> Bool {
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "\"") { return true }
            if byte == UInt8(ascii: "\\"), rest.popFirst() == nil { return false }
        }
        return false
    }

    // MARK: Bytes

    private mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard rest.first == UInt8(ascii: character) else { return false }
        rest = rest.dropFirst()
        return true
    }

    private mutating func skip(_ isSkipped: (UInt8) -> Bool) { rest = rest.drop(while: isSkipped) }

    private mutating func takeText(_ isTaken: (UInt8) -> Bool) -> String {
        let taken = rest.prefix(while: isTaken)
        rest = rest[taken.endIndex...]
        return Self.text(taken)
    }

    private static func text(_ bytes: Substring.UTF8View) -> String { String(Substring(bytes)) }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") }

    private static func isWhiteSpace(_ byte: UInt8) -> Bool { isSpace(byte) || byte == UInt8(ascii: "\t") }

    private static func isLetter(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

    private static func isOfKey(_ byte: UInt8) -> Bool { isLetter(byte) || isDigit(byte) || "_-.*".utf8.contains(byte) }

    /// Whether a byte belongs to a number, a Boolean, a date or a token.
    private static func isOfBareItem(_ byte: UInt8) -> Bool {
        isLetter(byte) || isDigit(byte) || "?@:/!#$%&'*+-.^_`|~".utf8.contains(byte)
    }
}
