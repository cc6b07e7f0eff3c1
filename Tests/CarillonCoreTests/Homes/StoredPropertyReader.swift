/// A stored property, a case of an enum, or a type alias.
struct StoredProperty {
    /// The type that has the property, with the types around that type; empty at the top level of a file.
    var owner: String
    /// The first name of the declaration.
    var name = ""
    /// The capitalised names in its type and in its value, without names before or after a dot. A name after the dot of a module counts.
    var names: Set<String> = []

    var path: String { owner.isEmpty ? name : owner + "." + name }
}

/// Finds the stored properties of a source, and with them cases of enums and type aliases, because these can contain types as well.
///
/// It does not find a type that the compiler infers from the value of another property or function, nor a generic parameter. Like
/// ``DeclarationReader``, it reads bytes.
struct StoredPropertyReader {
    private enum Bracket: Equatable {
        /// The braces of the type with this name.
        case members(String)
        /// Other braces.
        case code
        /// Round and square brackets.
        case list
    }

    /// A declaration that is being read.
    private struct Reading {
        var property: StoredProperty
        /// The number of brackets around the declaration.
        var depth: Int
        var isVariable: Bool
        var hasValue = false
    }

    private static let types: Set = ["struct", "class", "enum", "protocol", "actor", "extension"]
    private static let beginnings: Set = ["let", "var", "case", "typealias"]
    private static let others: Set = ["func", "init", "deinit", "subscript", "associatedtype", "import"]
    private static let module = "CarillonCore"
    private static let (dot, quote) = (UInt8(ascii: "."), UInt8(ascii: "`"))

    private let code: [UInt8]
    private var properties: [StoredProperty] = []
    private var reading: Reading?
    private var brackets: [Bracket] = []
    private var isBalanced = true
    /// The name of a type whose braces are next.
    private var header: String?
    /// The last two bytes that are not white space.
    private var marks: (earlier: UInt8, last: UInt8) = (0, 0)
    /// The token directly before; empty if a mark is between.
    private var former = ""
    private var lastWord = ""

    /// Returns nil if the brackets of the source do not match: then it cannot be read.
    static func properties(in source: String) -> [StoredProperty]? {
        var reader = StoredPropertyReader(code: Array(SwiftSource.code(source).utf8))
        reader.read()
        return reader.isBalanced ? reader.properties : nil
    }

    private init(code: [UInt8]) { self.code = code }

    private mutating func read() {
        var place = 0
        while place < code.count {
            let byte = code[place]
            guard Self.isOfWord(byte) else {
                if byte > UInt8(ascii: " ") { note(byte, at: place) }
                place += 1
                continue
            }
            var end = place
            while end < code.count, Self.isOfWord(code[end]) { end += 1 }
            note(String(decoding: code[place..<end], as: UTF8.self), at: place, endingAt: end)
            marks = (0, code[end - 1])
            place = end
        }
        finish()
        if !brackets.isEmpty { isBalanced = false }
    }

    private static func isOfWord(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
            true
        default: byte >= 0x80
        }
    }

    // MARK: Brackets

    private mutating func note(_ mark: UInt8, at place: Int) {
        switch mark {
        case UInt8(ascii: "{"): openBrace(at: place)
        case UInt8(ascii: "("), UInt8(ascii: "["): brackets.append(.list)
        case UInt8(ascii: ")"), UInt8(ascii: "]"), UInt8(ascii: "}"): close(isBrace: mark == UInt8(ascii: "}"))
        case UInt8(ascii: "="): if isAmongMembers { reading?.hasValue = true }
        default: break
        }
        marks = (marks.last, mark)
        former = ""
    }

    private mutating func openBrace(at place: Int) {
        if let name = header {
            header = nil
            brackets.append(.members(name))
            return
        }
        if isAmongMembers, let property = reading, property.isVariable, !property.hasValue, !hasObserver(after: place) {
            // It is computed.
            reading = nil
        }
        brackets.append(.code)
    }

    private mutating func close(isBrace: Bool) {
        let bracket = brackets.popLast()
        if bracket == nil || (bracket == .list) == isBrace { isBalanced = false }
        if let depth = reading?.depth, brackets.count < depth { finish() }
    }

    /// Whether the brace at a place begins the observers of a stored variable.
    private func hasObserver(after place: Int) -> Bool {
        let content = code[(place + 1)...].drop { $0 <= UInt8(ascii: " ") }
        let word = String(decoding: content.prefix(while: Self.isOfWord), as: UTF8.self)
        return word == "willSet" || word == "didSet"
    }

    /// Whether the place is directly in a type, or outside of all types and functions.
    private var isAmongMembers: Bool {
        switch brackets.last {
        case nil, .members?: true
        case .code?, .list?: false
        }
    }

    private var owner: String {
        let names = brackets.compactMap { bracket -> String? in
            guard case .members(let name) = bracket else { return nil }
            return name
        }
        return names.joined(separator: ".")
    }

    // MARK: Tokens

    private mutating func note(_ word: String, at place: Int, endingAt end: Int) {
        let isAfterDot = marks.last == Self.dot && marks.earlier != Self.dot && lastWord != Self.module
        let isQuoted = marks.last == Self.quote
        defer {
            former = isAfterDot || isQuoted ? "" : word
            lastWord = word
        }
        if reading?.property.name.isEmpty == true {
            reading?.property.name = word
            return
        }
        guard !isAfterDot, !isQuoted else { return }
        let isCapitalised = word.utf8.first.map { UInt8(ascii: "A")...UInt8(ascii: "Z") ~= $0 } ?? false
        if isCapitalised, Self.types.contains(former) {
            finish()
            header = path(at: place)
        } else if isAmongMembers, Self.beginnings.contains(word) {
            finish()
            reading = Reading(
                property: StoredProperty(owner: owner), depth: brackets.count, isVariable: word == "var")
        } else if isAmongMembers, Self.others.contains(word) {
            finish()
        } else if isCapitalised, !isBeforeDot(end), isInDeclaration {
            reading?.property.names.insert(word)
        }
    }

    /// Whether the place belongs to the declaration that is being read. The body of a function in its value does.
    private var isInDeclaration: Bool {
        guard let reading else { return false }
        return reading.hasValue || brackets[reading.depth...].allSatisfy { $0 == .list }
    }

    private mutating func finish() {
        if let reading { properties.append(reading.property) }
        reading = nil
    }

    /// Returns the name at a place, with the names that follow after dots.
    private func path(at place: Int) -> String {
        let name = code[place...].prefix { Self.isOfWord($0) || $0 == Self.dot }
        return String(decoding: name, as: UTF8.self)
    }

    /// Whether a dot follows. The dots of a range do not count.
    private func isBeforeDot(_ end: Int) -> Bool {
        code[end...].first == Self.dot && code[end...].dropFirst().first != Self.dot
    }
}
