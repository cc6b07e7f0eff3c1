/// Writes JSON directly into bytes (RFC 8259), without an intermediate tree. Socket frames and push payloads are written for
/// every message, and a general encoder would be the largest cost on that path.
///
/// Only quotation marks, backslashes and control characters are escaped. All other characters stay UTF-8, because Apple's push
/// service counts bytes.
package struct JSONWriter {
    package private(set) var bytes: [UInt8]
    private var needsComma = false

    package init(capacity: Int = 256) {
        bytes = []
        bytes.reserveCapacity(capacity)
    }

    /// The text of one object.
    package static func object(capacity: Int = 256, _ members: (inout JSONWriter) -> Void) -> [UInt8] {
        var writer = JSONWriter(capacity: capacity)
        writer.object(members)
        return writer.bytes
    }

    // MARK: Members

    package mutating func key(_ name: StaticString) {
        separate()
        bytes.append(UInt8(ascii: "\""))
        name.withUTF8Buffer { bytes.append(contentsOf: $0) }
        bytes.append(UInt8(ascii: "\""))
        bytes.append(UInt8(ascii: ":"))
    }

    /// Writes a member name that comes from outside the program.
    package mutating func key(untrusted name: String) {
        separate()
        string(name)
        bytes.append(UInt8(ascii: ":"))
    }

    /// Writes nothing for nil, as the other functions do.
    package mutating func member(_ name: StaticString, _ value: String?) {
        guard let value else { return }
        key(name)
        string(value)
    }

    package mutating func member(untrusted name: String, _ value: String) {
        key(untrusted: name)
        string(value)
    }

    package mutating func member(_ name: StaticString, _ value: Int64?) {
        guard let value else { return }
        key(name)
        integer(value)
    }

    package mutating func member(_ name: StaticString, _ value: Int?) { member(name, value.map { Int64($0) }) }

    package mutating func member(_ name: StaticString, _ value: Double?) {
        guard let value else { return }
        key(name)
        number(value)
    }

    package mutating func member(_ name: StaticString, _ value: Bool) {
        key(name)
        bytes.append(contentsOf: (value ? "true" : "false").utf8)
    }

    package mutating func member(_ name: StaticString, base64URL value: [UInt8]) {
        key(name)
        bytes.append(UInt8(ascii: "\""))
        Base64URL.append(value, to: &bytes)
        bytes.append(UInt8(ascii: "\""))
    }

    package mutating func member(_ name: StaticString, _ values: [String]?) {
        guard let values else { return }
        key(name)
        array(values) { $0.string($1) }
    }

    /// Writes an array with one object for each element.
    package mutating func member<Element>(
        _ name: StaticString, _ elements: [Element], _ members: (inout JSONWriter, Element) -> Void
    ) {
        key(name)
        array(elements) { writer, element in writer.object { members(&$0, element) } }
    }

    /// Writes a value that is already JSON.
    package mutating func member(_ name: StaticString, text: [UInt8]?) {
        guard let text else { return }
        key(name)
        bytes.append(contentsOf: text)
    }

    package mutating func member(_ name: StaticString, object members: (inout JSONWriter) -> Void) {
        key(name)
        object(members)
    }

    // MARK: Values

    package mutating func object(_ members: (inout JSONWriter) -> Void) {
        bytes.append(UInt8(ascii: "{"))
        needsComma = false
        members(&self)
        bytes.append(UInt8(ascii: "}"))
        needsComma = true
    }

    private mutating func array<Element>(_ elements: [Element], _ write: (inout JSONWriter, Element) -> Void) {
        bytes.append(UInt8(ascii: "["))
        for (index, element) in elements.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            write(&self, element)
        }
        bytes.append(UInt8(ascii: "]"))
    }

    /// Writes a value that is already JSON.
    package mutating func text(_ text: [UInt8]) { bytes.append(contentsOf: text) }

    /// Writes any value unchanged.
    package mutating func value(_ value: JSONValue) {
        switch value {
        case .null: bytes.append(contentsOf: "null".utf8)
        case .bool(let value): bytes.append(contentsOf: (value ? "true" : "false").utf8)
        case .integer(let value): integer(Int64(value))
        case .number(let value): number(value)
        case .string(let value): string(value)
        case .array(let values): array(values) { $0.value($1) }
        case .object(let members):
            object { writer in
                for member in members {
                    writer.key(untrusted: member.name)
                    writer.value(member.value)
                }
            }
        }
    }

    package mutating func integer(_ value: Int64) {
        var text = value.description
        text.withUTF8 { bytes.append(contentsOf: $0) }
    }

    /// Writes a number, which must be finite.
    package mutating func number(_ value: Double) {
        // 2^63 is excluded: as an `Int64` it overflows, and `JSONReader` does not read it as an integer.
        if value.magnitude < 0x1p63, let whole = Int64(exactly: value) { return integer(whole) }
        var text = value.description
        text.withUTF8 { bytes.append(contentsOf: $0) }
    }

    package mutating func string(_ value: String) {
        var value = value
        value.withUTF8 { text in
            bytes.append(UInt8(ascii: "\""))
            var start = 0
            for index in text.indices {
                let byte = text[index]
                guard byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") else { continue }
                bytes.append(contentsOf: text[start..<index])
                start = index + 1
                escape(byte)
            }
            bytes.append(contentsOf: text[start...])
            bytes.append(UInt8(ascii: "\""))
        }
    }

    private mutating func separate() {
        if needsComma { bytes.append(UInt8(ascii: ",")) }
        needsComma = true
    }

    private mutating func escape(_ byte: UInt8) {
        bytes.append(UInt8(ascii: "\\"))
        switch byte {
        case 0x08: bytes.append(UInt8(ascii: "b"))
        case 0x09: bytes.append(UInt8(ascii: "t"))
        case 0x0A: bytes.append(UInt8(ascii: "n"))
        case 0x0C: bytes.append(UInt8(ascii: "f"))
        case 0x0D: bytes.append(UInt8(ascii: "r"))
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes.append(byte)
        default:
            bytes.append(contentsOf: "u00".utf8)
            Hexadecimal.append(byte, to: &bytes)
        }
    }
}
