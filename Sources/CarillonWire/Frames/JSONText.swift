/// Builds one JSON object as UTF-8 bytes: the frames of the socket are written for every message and every device,
/// and a general encoder costs more than all else on that path.
package struct JSONText: Sendable {
    package private(set) var bytes: [UInt8]
    private var isFirst = true

    package init(capacity: Int) {
        bytes = []
        bytes.reserveCapacity(capacity)
        bytes.append(UInt8(ascii: "{"))
    }

    package mutating func add(_ name: StaticString, _ value: String) {
        startMember(name)
        appendQuoted(value)
    }

    package mutating func add(_ name: StaticString, _ value: Int64) {
        startMember(name)
        bytes.append(contentsOf: String(value).utf8)
    }

    package mutating func add(_ name: StaticString, _ value: Bool) {
        startMember(name)
        bytes.append(contentsOf: (value ? "true" : "false").utf8)
    }

    package mutating func add(_ name: StaticString, base64URL value: some Collection<UInt8>) {
        startMember(name)
        bytes.append(UInt8(ascii: "\""))
        Base64URL.append(value, to: &bytes)
        bytes.append(UInt8(ascii: "\""))
    }

    /// Adds an object whose members the closure adds.
    package mutating func add(_ name: StaticString, _ members: (inout JSONText) -> Void) {
        startMember(name)
        bytes.append(UInt8(ascii: "{"))
        isFirst = true
        members(&self)
        bytes.append(UInt8(ascii: "}"))
        isFirst = false
    }

    /// Adds an array with one object for each element.
    package mutating func add<Element>(
        _ name: StaticString, _ elements: [Element], _ members: (inout JSONText, Element) -> Void
    ) {
        startMember(name)
        bytes.append(UInt8(ascii: "["))
        for (index, element) in elements.enumerated() {
            bytes.append(contentsOf: index == 0 ? "{".utf8 : ",{".utf8)
            isFirst = true
            members(&self, element)
            bytes.append(UInt8(ascii: "}"))
        }
        bytes.append(UInt8(ascii: "]"))
        isFirst = false
    }

    /// Adds a member whose name came from outside.
    package mutating func add(untrustedName name: String, _ value: String) {
        separate()
        appendQuoted(name)
        bytes.append(UInt8(ascii: ":"))
        appendQuoted(value)
    }

    /// Ends the object and gives its text.
    package consuming func finished() -> [UInt8] {
        bytes.append(UInt8(ascii: "}"))
        return bytes
    }

    private mutating func separate() {
        if !isFirst { bytes.append(UInt8(ascii: ",")) }
        isFirst = false
    }

    private mutating func startMember(_ name: StaticString) {
        separate()
        bytes.append(UInt8(ascii: "\""))
        name.withUTF8Buffer { bytes.append(contentsOf: $0) }
        bytes.append(UInt8(ascii: "\""))
        bytes.append(UInt8(ascii: ":"))
    }

    private mutating func appendQuoted(_ value: String) {
        bytes.append(UInt8(ascii: "\""))
        for byte in value.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                bytes.append(UInt8(ascii: "\\"))
                bytes.append(byte)
            case 0..<0x20:
                bytes.append(contentsOf: "\\u00".utf8)
                bytes.append(contentsOf: Hexadecimal.encode(CollectionOfOne(byte)).utf8)
            default:
                bytes.append(byte)
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }
}
