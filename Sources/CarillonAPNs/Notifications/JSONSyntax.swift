/// Checks that bytes are one JSON value (RFC 8259) of at most 64 levels.
struct JSONSyntax {
    private let bytes: [UInt8]
    private var place = 0

    static func holds(_ bytes: [UInt8]) -> Bool {
        var syntax = JSONSyntax(bytes: bytes)
        guard syntax.value(depth: 0) else { return false }
        syntax.skipSpace()
        return syntax.place == bytes.count && String(validating: bytes, as: UTF8.self) != nil
    }

    private init(bytes: [UInt8]) { self.bytes = bytes }

    private var next: UInt8? { place < bytes.count ? bytes[place] : nil }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard next == byte else { return false }
        place += 1
        return true
    }

    private mutating func take(_ text: StaticString) -> Bool {
        text.withUTF8Buffer { text in text.allSatisfy { take($0) } }
    }

    private mutating func skipSpace() {
        while let byte = next, byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D { place += 1 }
    }

    private mutating func value(depth: Int) -> Bool {
        skipSpace()
        guard depth < 64, let byte = next else { return false }
        switch byte {
        case UInt8(ascii: "{"): return list(closedBy: UInt8(ascii: "}")) { $0.member(depth: depth + 1) }
        case UInt8(ascii: "["): return list(closedBy: UInt8(ascii: "]")) { $0.value(depth: depth + 1) }
        case UInt8(ascii: "\""): return string()
        case UInt8(ascii: "t"): return take("true")
        case UInt8(ascii: "f"): return take("false")
        case UInt8(ascii: "n"): return take("null")
        default: return number()
        }
    }

    private mutating func list(closedBy end: UInt8, _ item: (inout JSONSyntax) -> Bool) -> Bool {
        place += 1
        skipSpace()
        if take(end) { return true }
        repeat {
            guard item(&self) else { return false }
            skipSpace()
        } while take(UInt8(ascii: ","))
        return take(end)
    }

    private mutating func member(depth: Int) -> Bool {
        skipSpace()
        guard string() else { return false }
        skipSpace()
        return take(UInt8(ascii: ":")) && value(depth: depth)
    }

    private mutating func string() -> Bool {
        guard take(UInt8(ascii: "\"")) else { return false }
        while let byte = next, byte >= 0x20 {
            place += 1
            switch byte {
            case UInt8(ascii: "\""): return true
            case UInt8(ascii: "\\"): guard escape() else { return false }
            default: break
            }
        }
        return false
    }

    private mutating func escape() -> Bool {
        guard let byte = next else { return false }
        place += 1
        guard byte == UInt8(ascii: "u") else { return "\"\\/bfnrt".utf8.contains(byte) }
        for _ in 0..<4 {
            guard let digit = next, digit &- 0x30 < 10 || (digit | 0x20) &- 0x61 < 6 else { return false }
            place += 1
        }
        return true
    }

    private mutating func number() -> Bool {
        _ = take(UInt8(ascii: "-"))
        if !take(UInt8(ascii: "0")) { guard digits() else { return false } }
        if take(UInt8(ascii: ".")) { guard digits() else { return false } }
        if take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) {
            if !take(UInt8(ascii: "+")) { _ = take(UInt8(ascii: "-")) }
            return digits()
        }
        return true
    }

    private mutating func digits() -> Bool {
        let start = place
        while let byte = next, byte &- 0x30 < 10 { place += 1 }
        return place > start
    }
}
