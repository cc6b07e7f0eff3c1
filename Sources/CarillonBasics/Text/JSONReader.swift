struct JSONReader {
    let text: UnsafeBufferPointer<UInt8>
    /// The position of this text in the text that contains it.
    var offset = 0
    var depthLimit = 32
    /// Whether reading continues after a number that is too large for `Double`, so that the number can be reported.
    private let passesOutOfRange: Bool
    /// Whether half of a surrogate pair is read as U+FFFD, so that it can be reported.
    private let passesHalfPairs: Bool
    private(set) var hasHalfPair = false
    /// The first number that is too large for `Double`.
    private(set) var outOfRange: Range<Int>?
    /// The names and indexes of the values that contain this number, innermost first.
    private(set) var path: [String] = []
    private var index = 0

    init(
        text: UnsafeBufferPointer<UInt8>, offset: Int = 0, depthLimit: Int = 32, passesOutOfRange: Bool = false,
        passesHalfPairs: Bool = false
    ) {
        self.text = text
        self.offset = offset
        self.depthLimit = depthLimit
        self.passesOutOfRange = passesOutOfRange
        self.passesHalfPairs = passesHalfPairs
    }

    mutating func readText() -> JSONValue? {
        guard let value = readValue(depth: 0) else { return nil }
        skipSpace()
        return index == text.count ? value : nil
    }

    mutating func readWhole<Value>(_ body: (inout Self) -> Value?) -> Value? {
        skipSpace()
        guard let value = body(&self) else { return nil }
        skipSpace()
        return index == text.count ? value : nil
    }

    mutating func readMembers() -> [(name: String, place: Range<Int>)]? {
        guard take(UInt8(ascii: "{")) else { return nil }
        skipSpace()
        if take(UInt8(ascii: "}")) { return [] }
        var members: [(name: String, place: Range<Int>)] = []
        while true {
            skipSpace()
            guard next == UInt8(ascii: "\""), let name = readString() else { return nil }
            skipSpace()
            guard take(UInt8(ascii: ":")), let place = readPlace() else { return nil }
            members.append((name, place))
            if take(UInt8(ascii: ",")) { continue }
            return take(UInt8(ascii: "}")) ? members : nil
        }
    }

    mutating func readElements() -> [Range<Int>]? {
        guard take(UInt8(ascii: "[")) else { return nil }
        skipSpace()
        if take(UInt8(ascii: "]")) { return [] }
        var elements: [Range<Int>] = []
        while true {
            guard let place = readPlace() else { return nil }
            elements.append(place)
            if take(UInt8(ascii: ",")) { continue }
            return take(UInt8(ascii: "]")) ? elements : nil
        }
    }

    private mutating func readPlace() -> Range<Int>? {
        skipSpace()
        let start = index
        guard passValue() else { return nil }
        defer { skipSpace() }
        return offset + start..<offset + index
    }

    /// Skips a value, which can be nested to any depth.
    private mutating func passValue() -> Bool {
        // For each open bracket, outermost first: whether it opens an object.
        var open: [Bool] = []
        while true {
            skipSpace()
            if take(UInt8(ascii: "{")) {
                skipSpace()
                if !take(UInt8(ascii: "}")) {
                    guard passName() else { return false }
                    open.append(true)
                    continue
                }
            } else if take(UInt8(ascii: "[")) {
                skipSpace()
                if !take(UInt8(ascii: "]")) {
                    open.append(false)
                    continue
                }
            } else if readValue(depth: 0) == nil {
                return false
            }
            guard let hasMore = passEnds(of: &open) else { return false }
            if !hasMore { return true }
        }
    }

    /// Skips the characters that can follow a value: closing brackets, and a comma with the name of the next member. Returns
    /// whether another value follows; nil if the text is not valid JSON.
    private mutating func passEnds(of open: inout [Bool]) -> Bool? {
        while let isObject = open.last {
            skipSpace()
            if take(UInt8(ascii: ",")) { return !isObject || passName() ? true : nil }
            guard take(isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) else { return nil }
            open.removeLast()
        }
        return false
    }

    private mutating func passName() -> Bool {
        skipSpace()
        guard next == UInt8(ascii: "\""), readString() != nil else { return false }
        skipSpace()
        return take(UInt8(ascii: ":"))
    }

    private var next: UInt8? { index < text.count ? text[index] : nil }

    private mutating func skipSpace() {
        while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { index += 1 }
    }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard next == byte else { return false }
        index += 1
        return true
    }

    private mutating func take(_ word: StaticString) -> Bool {
        let end = index + word.utf8CodeUnitCount
        guard end <= text.count else { return false }
        for offset in 0..<word.utf8CodeUnitCount where text[index + offset] != word.utf8Start[offset] { return false }
        index = end
        return true
    }

    private mutating func readValue(depth: Int) -> JSONValue? {
        guard depth <= depthLimit else { return nil }
        skipSpace()
        switch next {
        case UInt8(ascii: "\""): return readString().map { .string($0) }
        case UInt8(ascii: "{"): return readObject(depth: depth)
        case UInt8(ascii: "["): return readArray(depth: depth)
        case UInt8(ascii: "t"): return take("true") ? .bool(true) : nil
        case UInt8(ascii: "f"): return take("false") ? .bool(false) : nil
        case UInt8(ascii: "n"): return take("null") ? .null : nil
        default: return readNumber()
        }
    }

    private mutating func readObject(depth: Int) -> JSONValue? {
        index += 1
        skipSpace()
        if take(UInt8(ascii: "}")) { return .object([]) }
        var members: [JSONValue.Member] = []
        while true {
            skipSpace()
            guard next == UInt8(ascii: "\""), let name = readString() else { return nil }
            skipSpace()
            let isSearching = outOfRange == nil
            guard take(UInt8(ascii: ":")), let value = readValue(depth: depth + 1) else { return nil }
            if isSearching, outOfRange != nil { path.append(name) }
            members.append(.init(name: name, value: value))
            skipSpace()
            if take(UInt8(ascii: ",")) { continue }
            return take(UInt8(ascii: "}")) ? .object(members) : nil
        }
    }

    private mutating func readArray(depth: Int) -> JSONValue? {
        index += 1
        skipSpace()
        if take(UInt8(ascii: "]")) { return .array([]) }
        var values: [JSONValue] = []
        while true {
            let isSearching = outOfRange == nil
            guard let value = readValue(depth: depth + 1) else { return nil }
            if isSearching, outOfRange != nil { path.append(String(values.count)) }
            values.append(value)
            skipSpace()
            if take(UInt8(ascii: ",")) { continue }
            return take(UInt8(ascii: "]")) ? .array(values) : nil
        }
    }

    // MARK: Strings

    private mutating func readString() -> String? {
        index += 1
        let start = index
        var bits: UInt8 = 0
        while let byte = next {
            switch byte {
            case UInt8(ascii: "\""):
                let slice = text[start..<index]
                index += 1
                // Bytes below 0x80 are valid UTF-8, and unchecked decoding is faster.
                return bits < 0x80 ? String(decoding: slice, as: UTF8.self) : String(validating: slice, as: UTF8.self)
            case UInt8(ascii: "\\"):
                return readEscaped(from: start)
            case 0x00..<0x20:
                return nil
            default:
                bits |= byte
                index += 1
            }
        }
        return nil
    }

    private mutating func readEscaped(from start: Int) -> String? {
        var bytes = Array(text[start..<index])
        while let byte = next {
            index += 1
            switch byte {
            case UInt8(ascii: "\""): return String(validating: bytes, as: UTF8.self)
            case UInt8(ascii: "\\"): guard appendEscape(to: &bytes) else { return nil }
            case 0x00..<0x20: return nil
            default: bytes.append(byte)
            }
        }
        return nil
    }

    private mutating func appendEscape(to bytes: inout [UInt8]) -> Bool {
        guard let byte = next else { return false }
        index += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): bytes.append(byte)
        case UInt8(ascii: "b"): bytes.append(0x08)
        case UInt8(ascii: "f"): bytes.append(0x0C)
        case UInt8(ascii: "n"): bytes.append(0x0A)
        case UInt8(ascii: "r"): bytes.append(0x0D)
        case UInt8(ascii: "t"): bytes.append(0x09)
        case UInt8(ascii: "u"):
            guard let scalar = readScalar() else { return false }
            bytes.append(contentsOf: String(scalar).utf8)
        default: return false
        }
        return true
    }

    /// Reads four hexadecimal digits, or two groups of four for a character beyond the basic multilingual plane. Half of a
    /// surrogate pair is not a character.
    private mutating func readScalar() -> Unicode.Scalar? {
        guard let first = readCodeUnit() else { return nil }
        if let scalar = Unicode.Scalar(first) { return scalar }
        guard UTF16.isLeadSurrogate(first) else { return halfPair() }
        let end = index
        guard take("\\u"), let second = readCodeUnit(), UTF16.isTrailSurrogate(second) else {
            index = end
            return halfPair()
        }
        return Unicode.Scalar(0x10000 + (UInt32(first) & 0x3FF) << 10 + UInt32(second) & 0x3FF)
    }

    private mutating func halfPair() -> Unicode.Scalar? {
        guard passesHalfPairs else { return nil }
        hasHalfPair = true
        return "\u{FFFD}"
    }

    private mutating func readCodeUnit() -> UInt16? {
        guard index + 4 <= text.count else { return nil }
        var unit: UInt16 = 0
        for _ in 0..<4 {
            guard let digit = Character(Unicode.Scalar(text[index])).hexDigitValue, text[index] < 0x80 else { return nil }
            unit = unit << 4 | UInt16(digit)
            index += 1
        }
        return unit
    }

    // MARK: Numbers

    private mutating func readNumber() -> JSONValue? {
        let start = index
        _ = take(UInt8(ascii: "-"))
        guard let first = next else { return nil }
        guard takeDigits() > 0 else { return nil }
        if first == UInt8(ascii: "0"), index - start > (text[start] == UInt8(ascii: "-") ? 2 : 1) { return nil }
        if take(UInt8(ascii: ".")) {
            guard takeDigits() > 0 else { return nil }
        }
        if take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) {
            if !take(UInt8(ascii: "+")) { _ = take(UInt8(ascii: "-")) }
            guard takeDigits() > 0 else { return nil }
        }
        let digits = text[start..<index]
        if let integer = WholeNumber.value(of: digits, as: Int.self) { return .integer(integer) }
        guard let number = Double(String(decoding: digits, as: UTF8.self)), number.isFinite else {
            guard passesOutOfRange else { return nil }
            if outOfRange == nil { outOfRange = start..<index }
            return .null
        }
        return .number(number)
    }

    private mutating func takeDigits() -> Int {
        let start = index
        while let byte = next, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { index += 1 }
        return index - start
    }
}
