/// Splits the text of a condition into tokens ("Lexis" in the language's definition).
struct Lexer {
    private let bytes: [UInt8]
    private var place = 0

    init(_ source: String) { bytes = Array(source.utf8) }

    /// Returns all tokens; the last one is the end.
    static func tokens(of source: String) throws(Problem) -> [Token] {
        var lexer = Lexer(source)
        var tokens: [Token] = []
        while true {
            let token = try lexer.next()
            tokens.append(token)
            if token.kind == .end { return tokens }
        }
    }

    private mutating func next() throws(Problem) -> Token {
        skipSpaceAndComments()
        let start = place
        guard let byte = peek() else { return Token(kind: .end, offset: start) }
        if byte.isLetter {
            if let text = try prefixedText() { return Token(kind: text, offset: start) }
            return Token(kind: .name(name()), offset: start)
        }
        if byte.isDigit || byte == UInt8(ascii: ".") && peek(1)?.isDigit == true {
            return Token(kind: try number(), offset: start)
        }
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "'"):
            return Token(kind: try text(isRaw: false, isBytes: false, from: start), offset: start)
        case UInt8(ascii: "`"):
            return Token(kind: try quotedName(), offset: start)
        default:
            for symbol in Token.Symbol.allCases where bytes[place...].starts(with: symbol.rawValue.utf8) {
                place += symbol.rawValue.utf8.count
                return Token(kind: .symbol(symbol), offset: start)
            }
            let character =
                String(decoding: bytes[place...].prefix(4), as: UTF8.self).unicodeScalars.first.map(String.init) ?? ""
            throw Problem(.syntax, "\"\(character)\" is not valid here", at: start)
        }
    }

    private func peek(_ ahead: Int = 0) -> UInt8? { place + ahead < bytes.count ? bytes[place + ahead] : nil }

    private mutating func skipSpaceAndComments() {
        while let byte = peek() {
            switch byte {
            case UInt8(ascii: " "), 9, 10, 12, 13: place += 1
            case UInt8(ascii: "/") where peek(1) == UInt8(ascii: "/"):
                while let byte = peek(), byte != 10 { _ = byte; place += 1 }
            default: return
            }
        }
    }

    // MARK: Names

    private mutating func name() -> String {
        let start = place
        while let byte = peek(), byte.isLetter || byte.isDigit { place += 1 }
        return String(decoding: bytes[start..<place], as: UTF8.self)
    }

    private mutating func quotedName() throws(Problem) -> Token.Kind {
        let start = place
        place += 1
        while let byte = peek(), byte.isLetter || byte.isDigit || "-./ ".utf8.contains(byte) { place += 1 }
        guard peek() == UInt8(ascii: "`"), place > start + 1 else {
            throw Problem(.syntax, "a name between backticks can have letters, digits, and \"_-./ \"", at: place)
        }
        place += 1
        return .quotedName(String(decoding: bytes[start + 1..<place - 1], as: UTF8.self))
    }

    // MARK: Numbers

    private mutating func number() throws(Problem) -> Token.Kind {
        let start = place
        if peek() == UInt8(ascii: "0"), peek(1) == UInt8(ascii: "x") {
            place += 2
            let digits = digits { $0.hexadecimalValue != nil }
            guard !digits.isEmpty else { throw Problem(.syntax, "digits are missing after 0x", at: place) }
            return try whole(digits, radix: 16, from: start)
        }
        var text = digits(where: \.isDigit)
        var isDouble = false
        if peek() == UInt8(ascii: "."), peek(1)?.isDigit == true {
            place += 1
            isDouble = true
            text += "." + digits(where: \.isDigit)
        }
        if let letter = peek(), letter == UInt8(ascii: "e") || letter == UInt8(ascii: "E") {
            let sign = peek(1) == UInt8(ascii: "+") || peek(1) == UInt8(ascii: "-")
            guard peek(sign ? 2 : 1)?.isDigit == true else {
                throw Problem(.syntax, "digits are missing after the exponent", at: place + 1)
            }
            place += 1
            isDouble = true
            text += "e"
            if sign {
                text += peek() == UInt8(ascii: "-") ? "-" : ""
                place += 1
            }
            text += digits(where: \.isDigit)
        }
        guard isDouble else { return try whole(text, radix: 10, from: start) }
        try endOfNumber(from: start)
        guard let value = Double(text.first == "." ? "0" + text : text), value.isFinite else {
            throw Problem(.syntax, "the number is out of range", at: start)
        }
        return .double(value)
    }

    private mutating func whole(_ digits: String, radix: Int, from start: Int) throws(Problem) -> Token.Kind {
        let isUnsigned = peek() == UInt8(ascii: "u") || peek() == UInt8(ascii: "U")
        if isUnsigned { place += 1 }
        try endOfNumber(from: start)
        guard let value = UInt64(digits, radix: radix) else {
            throw Problem(.syntax, "the number is out of range", at: start)
        }
        return isUnsigned ? .uint(value) : .int(value)
    }

    private func endOfNumber(from start: Int) throws(Problem) {
        guard let byte = peek(), byte.isLetter || byte.isDigit else { return }
        throw Problem(.syntax, "\"\(Character(Unicode.Scalar(byte)))\" is not valid in a number", at: place)
    }

    private mutating func digits(where isDigit: (UInt8) -> Bool) -> String {
        let start = place
        while let byte = peek(), isDigit(byte) { place += 1 }
        return String(decoding: bytes[start..<place], as: UTF8.self)
    }

    // MARK: Texts

    /// Reads a string or bytes with `r` or `b` before the quotes; nil if something else follows.
    private mutating func prefixedText() throws(Problem) -> Token.Kind? {
        let start = place
        var ahead = 0
        var isBytes = false
        var isRaw = false
        if peek() == UInt8(ascii: "b") || peek() == UInt8(ascii: "B") {
            isBytes = true
            ahead += 1
        }
        if peek(ahead) == UInt8(ascii: "r") || peek(ahead) == UInt8(ascii: "R") {
            isRaw = true
            ahead += 1
        }
        guard ahead > 0, peek(ahead) == UInt8(ascii: "\"") || peek(ahead) == UInt8(ascii: "'") else { return nil }
        place += ahead
        return try text(isRaw: isRaw, isBytes: isBytes, from: start)
    }

    private mutating func text(isRaw: Bool, isBytes: Bool, from start: Int) throws(Problem) -> Token.Kind {
        let quote = bytes[place]
        let isLong = peek(1) == quote && peek(2) == quote
        let delimiter = isLong ? [quote, quote, quote] : [quote]
        place += delimiter.count
        var content: [UInt8] = []
        while true {
            guard let byte = peek(), isLong || (byte != 10 && byte != 13) else {
                throw Problem(.syntax, "the text that begins here does not end", at: start)
            }
            if bytes[place...].starts(with: delimiter) {
                place += delimiter.count
                break
            }
            if byte == UInt8(ascii: "\\"), !isRaw {
                content += try escape(isBytes: isBytes)
            } else {
                content.append(byte)
                place += 1
            }
        }
        return isBytes ? .bytes(content) : .string(String(decoding: content, as: UTF8.self))
    }

    private static let simple: [UInt8: UInt8] = [
        UInt8(ascii: "a"): 7, UInt8(ascii: "b"): 8, UInt8(ascii: "f"): 12, UInt8(ascii: "n"): 10, UInt8(ascii: "r"): 13,
        UInt8(ascii: "t"): 9, UInt8(ascii: "v"): 11, UInt8(ascii: "\\"): UInt8(ascii: "\\"),
        UInt8(ascii: "?"): UInt8(ascii: "?"),
        UInt8(ascii: "\""): UInt8(ascii: "\""), UInt8(ascii: "'"): UInt8(ascii: "'"), UInt8(ascii: "`"): UInt8(ascii: "`"),
    ]

    private mutating func escape(isBytes: Bool) throws(Problem) -> [UInt8] {
        let start = place
        place += 1
        guard let letter = peek() else { throw Problem(.syntax, "the text ends in the middle of an escape", at: start) }
        if let byte = Self.simple[letter] {
            place += 1
            return [byte]
        }
        let value: UInt32?
        switch letter {
        case UInt8(ascii: "x"), UInt8(ascii: "X"): value = code(after: 1, digits: 2, radix: 16)
        case UInt8(ascii: "0")...UInt8(ascii: "3"): value = code(after: 0, digits: 3, radix: 8)
        case UInt8(ascii: "u") where !isBytes: value = code(after: 1, digits: 4, radix: 16)
        case UInt8(ascii: "U") where !isBytes: value = code(after: 1, digits: 8, radix: 16)
        default: value = nil
        }
        guard let value else { throw Problem(.syntax, "this is not a valid escape\(isBytes ? " of bytes" : "")", at: start) }
        if isBytes { return [UInt8(value)] }
        guard let scalar = Unicode.Scalar(value) else {
            throw Problem(.syntax, "the escape is not a valid character", at: start)
        }
        return Array(String(Character(scalar)).utf8)
    }

    private mutating func code(after skipped: Int, digits: Int, radix: UInt32) -> UInt32? {
        var value: UInt32 = 0
        for ahead in skipped..<(skipped + digits) {
            guard let digit = peek(ahead)?.hexadecimalValue, digit < radix else { return nil }
            value = value &* radix &+ digit
        }
        place += skipped + digits
        return value
    }
}

extension UInt8 {
    /// Whether the byte is an ASCII letter or the underscore.
    fileprivate var isLetter: Bool {
        (0x41...0x5A).contains(self) || (0x61...0x7A).contains(self) || self == UInt8(ascii: "_")
    }

    fileprivate var isDigit: Bool { (0x30...0x39).contains(self) }

    fileprivate var hexadecimalValue: UInt32? {
        switch self {
        case 0x30...0x39: UInt32(self - 0x30)
        case 0x41...0x46: UInt32(self - 0x41 + 10)
        case 0x61...0x66: UInt32(self - 0x61 + 10)
        default: nil
        }
    }
}
