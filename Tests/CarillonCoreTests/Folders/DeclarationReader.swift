/// A declaration at the top level of a file.
struct Declaration {
    var file: String
    var folder: String
    /// The name of the type that is declared or extended; empty for a function, a variable or a constant.
    var name = ""
    /// Whether it declares a type. An extension does not.
    var isType = false
    var isPrivate = false
    /// The nested types, at any depth, and the generic parameters.
    var inner: Set<String> = []
    /// The capitalised names in it, without names after a dot.
    var names: Set<String> = []
}

/// Finds the declarations of a source. It reads bytes, because a build without optimization reads more than a megabyte with it.
struct DeclarationReader {
    private static let types: Set = ["struct", "class", "enum", "protocol", "actor", "typealias"]
    private static let others: Set = ["extension", "func", "var", "let"]

    private let code: [UInt8]
    private let empty: Declaration
    private var declarations: [Declaration] = []
    private var braces = 0
    private var brackets = 0
    /// The last two bytes that are not white space.
    private var marks: (earlier: UInt8, last: UInt8) = (0, 0)
    /// The token directly before; empty if a mark is between.
    private var former = ""
    private var isPrivate = false

    static func declarations(in source: String, of file: String, in folder: String) -> [Declaration] {
        let code = Array(SwiftSource.code(source).utf8)
        var reader = DeclarationReader(code: code, empty: Declaration(file: file, folder: folder))
        reader.read()
        return reader.declarations
    }

    private init(code: [UInt8], empty: Declaration) {
        self.code = code
        self.empty = empty
    }

    private mutating func read() {
        var place = 0
        while place < code.count {
            let byte = code[place]
            guard Self.isOfWord(byte) else {
                if byte > UInt8(ascii: " ") { note(byte) }
                place += 1
                continue
            }
            var end = place
            while end < code.count, Self.isOfWord(code[end]) { end += 1 }
            note(String(decoding: code[place..<end], as: UTF8.self), endingAt: end)
            marks = (0, code[end - 1])
            place = end
        }
    }

    private static func isOfWord(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
            true
        default: byte >= 0x80
        }
    }

    private mutating func note(_ mark: UInt8) {
        switch mark {
        case UInt8(ascii: "{"): braces += 1
        case UInt8(ascii: "}"): braces -= 1
        case UInt8(ascii: "("): brackets += 1
        case UInt8(ascii: ")"): brackets -= 1
        default: break
        }
        marks = (marks.last, mark)
        former = ""
    }

    private mutating func note(_ word: String, endingAt end: Int) {
        let isOutside = braces == 0 && brackets == 0
        // A name after the dots of a range is no member.
        let isMember = marks.last == UInt8(ascii: ".") && marks.earlier != UInt8(ascii: ".")
        let isQuoted = marks.last == UInt8(ascii: "`")
        defer { former = isMember || isQuoted ? "" : word }
        guard !isMember, !isQuoted else { return }
        if isOutside, Self.types.contains(word) || Self.others.contains(word) {
            var declaration = empty
            declaration.isPrivate = isPrivate
            declarations.append(declaration)
            isPrivate = false
        } else if isOutside, word == "private" || word == "fileprivate" {
            isPrivate = true
        } else if let first = word.utf8.first, UInt8(ascii: "A")...UInt8(ascii: "Z") ~= first {
            noteName(word, isOutside: isOutside, endingAt: end)
        }
    }

    private mutating func noteName(_ name: String, isOutside: Bool, endingAt end: Int) {
        guard let last = declarations.indices.last else { return }
        let isDeclared = Self.types.contains(former)
        if isOutside, isDeclared || former == "extension" {
            declarations[last].name = name
            declarations[last].isType = isDeclared
            declarations[last].inner.formUnion(genericParameters(at: end))
            if isDeclared { return }
        } else if isDeclared || former == "associatedtype" {
            declarations[last].inner.insert(name)
            return
        }
        declarations[last].names.insert(name)
    }

    /// Returns the names of the generic parameters in the angle brackets at a place; none if there are no brackets.
    private func genericParameters(at place: Int) -> [String] {
        guard place < code.count, code[place] == UInt8(ascii: "<") else { return [] }
        let list = code[(place + 1)...].prefix { $0 != UInt8(ascii: ">") }
        return list.split(separator: UInt8(ascii: ",")).map { parameter in
            let name = parameter.drop { !Self.isOfWord($0) }.prefix(while: Self.isOfWord)
            return String(decoding: name, as: UTF8.self)
        }
    }
}
