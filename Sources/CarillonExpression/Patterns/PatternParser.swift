/// Parses a pattern in RE2's syntax. Syntax that needs more than linear time, or that RE2 does not have, is rejected with its
/// position.
struct PatternParser {
    private struct Flags {
        var foldsCase = false
        var isMultiline = false
        var dotTakesNewline = false
    }

    private let scalars: [Unicode.Scalar]
    private var place = 0
    private var depth = 0
    private var flags = Flags()
    private static let deepest = 100
    static let mostRepeats = 1000

    static func parse(_ pattern: String) throws(PatternProblem) -> PatternTree {
        var parser = PatternParser(pattern)
        let tree = try parser.choice()
        guard parser.peek() == nil else { throw parser.problem("this parenthesis was not opened") }
        return tree
    }

    private init(_ pattern: String) { scalars = Array(pattern.unicodeScalars) }

    private func peek(_ ahead: Int = 0) -> Unicode.Scalar? { place + ahead < scalars.count ? scalars[place + ahead] : nil }

    private func sees(_ text: String) -> Bool { scalars[place...].starts(with: text.unicodeScalars) }

    private mutating func accept(_ text: String) -> Bool {
        guard sees(text) else { return false }
        place += text.unicodeScalars.count
        return true
    }

    private func problem(_ message: String, at offset: Int? = nil) -> PatternProblem {
        PatternProblem(message: message, offset: offset ?? place)
    }

    // MARK: Structure

    private mutating func choice() throws(PatternProblem) -> PatternTree {
        depth += 1
        defer { depth -= 1 }
        guard depth <= Self.deepest else { throw problem("the groups are nested more than \(Self.deepest) levels deep") }
        var branches = [try sequence()]
        while accept("|") { branches.append(try sequence()) }
        return branches.count == 1 ? branches[0] : .choice(branches)
    }

    private mutating func sequence() throws(PatternProblem) -> PatternTree {
        var parts: [PatternTree] = []
        /// Whether the last part can be repeated. A change of flags and a repetition cannot.
        var canRepeat = false
        while let scalar = peek(), scalar != "|", scalar != ")" {
            let start = place
            if let (least, most) = try repetition() {
                guard let last = parts.last, canRepeat else {
                    throw problem(parts.isEmpty ? "there is nothing to repeat" : "this cannot be repeated", at: start)
                }
                parts[parts.count - 1] = .repetition(last, least: least, most: most)
                canRepeat = false
            } else if accept("\\Q") {
                while let scalar = peek(), !sees("\\E") {
                    parts.append(literal(scalar))
                    place += 1
                    canRepeat = true
                }
                _ = accept("\\E")
            } else if let part = try atom() {
                parts.append(part)
                canRepeat = true
            } else {
                canRepeat = false
            }
        }
        return parts.count == 1 ? parts[0] : parts.isEmpty ? .empty : .sequence(parts)
    }

    /// Parses a repetition sign. A question mark after it makes the repetition lazy, which has no effect here.
    private mutating func repetition() throws(PatternProblem) -> (least: Int, most: Int?)? {
        let found: (least: Int, most: Int?)
        switch peek() {
        case "*": found = (0, nil)
        case "+": found = (1, nil)
        case "?": found = (0, 1)
        case "{": return try counted()
        default: return nil
        }
        place += 1
        _ = accept("?")
        return found
    }

    /// Parses `{2}`, `{2,}` or `{2,5}`. Any other brace is a character.
    private mutating func counted() throws(PatternProblem) -> (least: Int, most: Int?)? {
        let start = place
        place += 1
        guard let least = number() else {
            place = start
            return nil
        }
        var most: Int? = least
        if accept(",") { most = sees("}") ? nil : number() ?? -1 }
        guard most != -1, accept("}") else {
            place = start
            return nil
        }
        guard least <= Self.mostRepeats, most ?? 0 <= Self.mostRepeats else {
            throw problem("more than \(Self.mostRepeats) repetitions are not supported", at: start)
        }
        guard least <= most ?? least else { throw problem("the minimum is more than the maximum", at: start) }
        _ = accept("?")
        return (least, most)
    }

    private mutating func number() -> Int? {
        let digits = scalars[place...].prefix { $0.value >= 0x30 && $0.value <= 0x39 }
        guard !digits.isEmpty else { return nil }
        place += digits.count
        // A number with more digits exceeds every valid count.
        return digits.count > 6 ? 1_000_000 : digits.reduce(0) { $0 * 10 + Int($1.value - 0x30) }
    }

    // MARK: Atoms

    /// Returns nil for flags, which match no character.
    private mutating func atom() throws(PatternProblem) -> PatternTree? {
        guard let scalar = peek() else { return nil }
        switch scalar {
        case "(": return try group()
        case "[": return .set(try bracket())
        case ".":
            place += 1
            guard !flags.dotTakesNewline else { return .any }
            var set = ScalarSet()
            set.insert("\n")
            set.isNegated = true
            return .set(set)
        case "^":
            place += 1
            return .assertion(flags.isMultiline ? .beginOfLine : .beginOfText)
        case "$":
            place += 1
            return .assertion(flags.isMultiline ? .endOfLine : .endOfText)
        case "\\": return try escape()
        default:
            place += 1
            return literal(scalar)
        }
    }

    private func literal(_ scalar: Unicode.Scalar) -> PatternTree {
        guard flags.foldsCase, CaseOrbit.of(scalar).count > 1 else { return .scalar(scalar) }
        var set = ScalarSet()
        for scalar in CaseOrbit.of(scalar) { set.insert(scalar) }
        return .set(set)
    }

    private mutating func group() throws(PatternProblem) -> PatternTree? {
        let start = place
        let outer = flags
        place += 1
        if accept("?") {
            if accept("P<") || !sees("<=") && !sees("<!") && accept("<") {
                try skipName()
            } else {
                guard try readFlags(from: start) else { return nil }
            }
        }
        let inner = try choice()
        guard accept(")") else { throw problem("this parenthesis is not closed", at: start) }
        flags = outer
        return inner
    }

    private mutating func skipName() throws(PatternProblem) {
        let name = scalars[place...].prefix { $0 != ">" }
        let isName = name.allSatisfy { scalar in ScalarSet.words.contains { $0.contains(scalar.value) } }
        guard !name.isEmpty, isName, place + name.count < scalars.count else {
            throw problem("this is not a valid name of a group")
        }
        place += name.count + 1
    }

    /// Returns whether a group follows, rather than the end of the parenthesis.
    private mutating func readFlags(from start: Int) throws(PatternProblem) -> Bool {
        var isSetting = true
        var count = 0
        while let scalar = peek() {
            place += 1
            switch scalar {
            case "i": flags.foldsCase = isSetting
            case "m": flags.isMultiline = isSetting
            case "s": flags.dotTakesNewline = isSetting
            // The preference between two ways to match has no effect here.
            case "U": break
            case "-" where isSetting:
                isSetting = false
                count = 0
                continue
            case ":" where isSetting || count > 0: return true
            case ")" where count > 0: return false
            default: throw problem("groups that begin like this are not supported", at: start)
            }
            count += 1
        }
        throw problem("this parenthesis is not closed", at: start)
    }

    // MARK: Escapes

    private mutating func escape() throws(PatternProblem) -> PatternTree {
        let start = place
        switch peek(1) {
        case "A": place += 2; return .assertion(.beginOfText)
        case "z": place += 2; return .assertion(.endOfText)
        case "b": place += 2; return .assertion(.wordBoundary)
        case "B": place += 2; return .assertion(.noWordBoundary)
        case nil: throw problem("the pattern ends in the middle of an escape")
        default: break
        }
        var set = ScalarSet()
        if try classEscape(into: &set) {
            set.foldsCase = flags.foldsCase
            return .set(set)
        }
        return literal(try scalarEscape(from: start))
    }

    /// Parses a class such as `\d` or `\pL`.
    private mutating func classEscape(into set: inout ScalarSet) throws(PatternProblem) -> Bool {
        guard peek() == "\\", let letter = peek(1) else { return false }
        switch letter {
        case "d", "D": set.insert(named: ScalarSet.digits, negated: letter == "D")
        case "s", "S": set.insert(named: ScalarSet.spaces, negated: letter == "S")
        case "w", "W": set.insert(named: ScalarSet.words, negated: letter == "W")
        case "p", "P":
            let start = place
            place += 2
            var isNegated = letter == "P"
            var name: [Unicode.Scalar]
            if accept("{") {
                name = Array(scalars[place...].prefix { $0 != "}" })
                guard place + name.count < scalars.count else { throw problem("this brace is not closed", at: start) }
                place += name.count + 1
                if name.first == "^" {
                    isNegated.toggle()
                    name.removeFirst()
                }
            } else {
                guard let scalar = peek() else { throw problem("the name of a class is missing") }
                name = [scalar]
                place += 1
            }
            let text = String(String.UnicodeScalarView(name))
            guard set.insert(category: text, negated: isNegated) else {
                throw problem(
                    "there is no class \(text.prefix(40)) here; the general categories of Unicode are known", at: start)
            }
            return true
        default: return false
        }
        place += 2
        return true
    }

    /// Parses one character after a backslash.
    private mutating func scalarEscape(from start: Int) throws(PatternProblem) -> Unicode.Scalar {
        place += 1
        guard let letter = peek() else { throw problem("the pattern ends in the middle of an escape") }
        place += 1
        switch letter {
        case "a": return "\u{7}"
        case "f": return "\u{C}"
        case "n": return "\n"
        case "r": return "\r"
        case "t": return "\t"
        case "v": return "\u{B}"
        case "x":
            let digits: [Unicode.Scalar]
            if accept("{") {
                digits = Array(scalars[place...].prefix { $0 != "}" })
                guard place + digits.count < scalars.count, digits.count <= 8 else {
                    throw problem("this is not the number of a character", at: start)
                }
                place += digits.count + 1
            } else {
                digits = Array(scalars[place...].prefix(2))
                place += digits.count
                guard digits.count == 2 else { throw problem("two digits are expected after \\x", at: start) }
            }
            return try character(digits, radix: 16, from: start)
        case "0"..."7":
            place -= 1
            let digits = Array(scalars[place...].prefix(3).prefix { $0.value >= 0x30 && $0.value <= 0x37 })
            guard letter == "0" || digits.count > 1 else { throw problem("back references are not supported", at: start) }
            place += digits.count
            return try character(digits, radix: 8, from: start)
        default:
            guard letter.isASCII, !ScalarSet.words.contains(where: { $0.contains(letter.value) }) else {
                throw problem("this escape is not supported", at: start)
            }
            return letter
        }
    }

    private func character(
        _ digits: [Unicode.Scalar], radix: Int, from start: Int
    ) throws(PatternProblem) -> Unicode.Scalar {
        let text = String(String.UnicodeScalarView(digits))
        guard digits.first != "+", digits.first != "-", let value = UInt32(text, radix: radix),
            let scalar = Unicode.Scalar(value)
        else { throw problem("this is not the number of a character", at: start) }
        return scalar
    }

    // MARK: Brackets

    private mutating func bracket() throws(PatternProblem) -> ScalarSet {
        let start = place
        place += 1
        var set = ScalarSet()
        set.isNegated = accept("^")
        set.foldsCase = flags.foldsCase
        var isFirst = true
        while true {
            guard let scalar = peek() else { throw problem("this bracket is not closed", at: start) }
            if scalar == "]", !isFirst { break }
            isFirst = false
            if sees("[:"), let name = posixName() {
                guard let ranges = ScalarSet.posix[name.text] else { throw problem("there is no class \(name.text)") }
                place += name.length
                set.insert(named: ranges, negated: name.isNegated)
            } else if try !classEscape(into: &set) {
                try range(into: &set)
            }
        }
        place += 1
        return set
    }

    private func posixName() -> (text: String, isNegated: Bool, length: Int)? {
        var name = scalars[(place + 2)...].prefix { $0 != ":" && $0 != "]" }
        guard name.endIndex + 1 < scalars.count, scalars[name.endIndex] == ":", scalars[name.endIndex + 1] == "]" else {
            return nil
        }
        let length = name.count + 4
        let isNegated = name.first == "^"
        if isNegated { name = name.dropFirst() }
        return (String(String.UnicodeScalarView(name)), isNegated, length)
    }

    private mutating func range(into set: inout ScalarSet) throws(PatternProblem) {
        let start = place
        let low = try bracketScalar()
        guard peek() == "-", let next = peek(1), next != "]" else { return set.insert(low) }
        place += 1
        let high = try bracketScalar()
        guard low.value <= high.value else { throw problem("this range goes backwards", at: start) }
        set.insert(low.value...high.value)
    }

    private mutating func bracketScalar() throws(PatternProblem) -> Unicode.Scalar {
        guard let scalar = peek() else { throw problem("this bracket is not closed") }
        if scalar == "\\" { return try scalarEscape(from: place) }
        place += 1
        return scalar
    }
}
