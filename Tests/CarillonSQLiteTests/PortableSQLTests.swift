import Foundation
import TestSupport
import Testing

/// The statements outside the hot folders have no form that only SQLite accepts, so that another store can use their text.
struct PortableSQLTests {
    /// Folders with SQL for SQLite alone.
    private static let hotFolders = ["Inbox", "Pushes", "LeasedWork", "Schema"]
    private static let source = "Sources/CarillonSQLite"
    /// The files that have the parts of statements that another store writes differently.
    private static let parts = ["Store/IndexHint.swift", "Store/SQLDialect.swift"]

    /// Whether a file may use PRAGMA and the tables of SQLite itself: the code that opens and copies the file of the store, and
    /// the code that erases former keys from it.
    private static func isOfStoreFile(_ file: String) -> Bool {
        file.hasPrefix("Store/") || file == "Keys/SQLiteStore+KeyRingStore.swift"
    }

    @Test func `no statement has a form that only SQLite accepts`() throws {
        let root = PageCode.root.appending(path: Self.source)
        var statements = 0
        for file in try FileManager.default.subpathsOfDirectory(atPath: root.path).sorted()
        where file.hasSuffix(".swift") && !Self.parts.contains(file) {
            guard !Self.hotFolders.contains(where: { file.hasPrefix("\($0)/") }) else { continue }
            let text = try String(contentsOf: root.appending(path: file), encoding: .utf8)
            #expect(SwiftLiterals(in: text).isComplete, "\(file) is not read to its end")
            statements += SQLText.statements(in: text).count
            let findings = SQLText.findings(in: text, ofStoreFile: Self.isOfStoreFile(file))
            #expect(findings.isEmpty, "\(file): \(findings.joined(separator: "; "))")
        }
        #expect(statements > 430, "the sources are not read")
    }

    @Test func `the page on architecture names the hot folders`() throws {
        let page = try String(contentsOf: PageCode.root.appending(path: "docs/architecture.md"), encoding: .utf8)
        let sentence = try #require(page.firstMatch(of: #/The folders (?<names>[^.]+) have SQL for SQLite alone\./#))
        let names = sentence.names.matches(of: #/`(\w+)`/#).map { String($0.output.1) }
        #expect(names == Self.hotFolders)
    }

    @Test(arguments: [
        "INSERT OR IGNORE INTO item VALUES (?)", "REPLACE INTO item VALUES (?)", "SELECT iif(a, b, c) FROM item",
        "UPDATE item SET at = max(at, ?)", "SELECT min(coalesce(a, 1), b) FROM item",
        "SELECT max(coalesce((SELECT max(a) FROM b), 0), 1)", "SELECT 1 FROM item WHERE a IS ?",
        "SELECT 1 FROM item WHERE a IS NOT :b", "SELECT 1 FROM item WHERE a IS 0", "SELECT 1 FROM item WHERE a NOT NULL",
        "SELECT sum(a = 1) FROM item", "SELECT total(a) FROM item", "SELECT 1 FROM item INDEXED BY item_of_app",
        "SELECT 1 FROM item LIMIT -1 OFFSET 1", "SELECT last_insert_rowid() FROM item", "DELETE FROM item WHERE rowid = ?",
        "SELECT user FROM item", "INSERT INTO item (a, user) VALUES (?, ?)", "UPDATE item SET user = ?", "user IS NULL",
        "SELECT instr(a, ?) FROM item", "SELECT seq FROM sqlite_sequence", "SELECT CAST(a AS BLOB) FROM item",
        "UPDATE item SET is_a = 1", "SELECT 1 FROM item WHERE b.has_a = 0", "PRAGMA secure_delete",
        "SELECT CASE b.needs_a WHEN 0 THEN 1 ELSE 2 END", "INSERT INTO item VALUES (?, EXISTS (SELECT 1 FROM b))",
        "UPDATE item SET a = EXISTS (SELECT 1 FROM b)", "SELECT 1 FROM item WHERE a GLOB ?",
        "SELECT 1 FROM item WHERE a == b", "UPDATE item SET a = x'00'", "SELECT randomblob(16) FROM item",
        "at = max(at, other)",
    ])
    func `a form that only SQLite accepts is found`(statement: String) {
        let multiline = "\"\"\"\n    \(statement)\n    \"\"\""
        #expect(SQLText.findings(in: "try db.run(\"\(statement)\")").count == 1)
        #expect(SQLText.findings(in: "try db.run(\n    \(multiline), [name(\"a\")])").count == 1)
    }

    @Test func `a form in an interpolation is found`() {
        let nested = #""SELECT \(isOld ? "max(a, ?)" : "0") FROM item""#
        #expect(SQLText.findings(in: nested) == ["scalar min or max in max(a, ?)"])
    }

    @Test(arguments: ["\")\"", "\"(\"", "\"\\\\\"", "\"\\(place(\"(\"))\""])
    func `a form behind another literal is found`(literal: String) {
        let source = "let a = \"\\(name(\(literal)))\"\nlet b = \"SELECT total(a) FROM item\""
        #expect(SwiftLiterals(in: source).isComplete)
        #expect(SQLText.findings(in: source) == ["total in SELECT total(a) FROM item"])
    }

    @Test(arguments: ["let a = (1", "let a = 1)", "let a = \"text", "let a = \"\\(name\"", "let a = \"\"\"\ntext"])
    func `an open literal is noticed`(source: String) {
        #expect(!SwiftLiterals(in: source).isComplete)
    }

    @Test func `PRAGMA is for the file of the store`() {
        let source = #"try db.execute(sql: "PRAGMA secure_delete = ON"); try db.run("SELECT total(a) FROM item")"#
        #expect(SQLText.findings(in: source).count == 2)
        #expect(SQLText.findings(in: source, ofStoreFile: true) == ["total in SELECT total(a) FROM item"])
    }

    @Test func `the serial of the last row is found`() {
        #expect(SQLText.findings(in: "return db.lastInsertedRowID") == ["lastInsertedRowID"])
    }

    @Test(arguments: [
        #""SELECT max(a), min(b) FROM item WHERE c IS NOT NULL AND d IS NULL""#,
        #""SELECT sum(CASE WHEN a > b THEN 1 ELSE 0 END) FROM item""#, #""SELECT count(*) FROM a LIMIT \(max(1, limit))""#,
        "// INSERT OR IGNORE INTO item\nlet a = max(1, 2)", #""The value IS text and NOT NULL.""#,
        #""SELECT coalesce(max(a), 0) FROM item LIMIT 1 OFFSET ?""#,
        #""INSERT INTO item (a, \"user\") VALUES (?, CASE WHEN EXISTS (SELECT 1 FROM b) THEN 1 ELSE 0 END)""#,
        #""SELECT a.user FROM item WHERE is_b AND NOT has_c AND a.user = :user""#, #"row["user"]"#,
        #""UPDATE item SET is_a = TRUE, of_user = 1 WHERE NOT is_a""#,
    ])
    func `other forms are not found`(source: String) {
        #expect(SQLText.findings(in: source).isEmpty)
    }
}

/// The text literals of Swift code, also those inside interpolations. An interpolated value is an x.
private struct SwiftLiterals {
    private let code: [Character]
    private var place = 0
    private(set) var found: [String] = []
    /// Whether each parenthesis and each literal of the code is closed.
    private(set) var isComplete = true

    init(in source: String) {
        code = Array(source)
        readCode(isInterpolated: false)
    }

    private func isNext(_ text: String) -> Bool { code[place...].starts(with: text) }

    private mutating func readCode(isInterpolated: Bool) {
        var depth = 0
        while place < code.count {
            if isNext("//") {
                place = code[place...].firstIndex(where: \.isNewline) ?? code.count
            } else if isNext("\"\"\"") {
                readLiteral(endingWith: "\"\"\"")
            } else if isNext("\"") {
                readLiteral(endingWith: "\"")
            } else {
                if code[place] == "(" { depth += 1 }
                if code[place] == ")" { depth -= 1 }
                place += 1
                if depth < 0, isInterpolated { return }
                if depth < 0 { isComplete = false }
            }
        }
        if isInterpolated || depth != 0 { isComplete = false }
    }

    private mutating func readLiteral(endingWith end: String) {
        place += end.count
        var text = ""
        while place < code.count {
            if isNext("\\(") {
                place += 2
                text.append("x")
                readCode(isInterpolated: true)
            } else if isNext("\\") {
                text += String(code[place..<min(place + 2, code.count)])
                place += 2
            } else if isNext(end) {
                place += end.count
                found.append(text)
                return
            } else if end == "\"", code[place].isNewline {
                break
            } else {
                text.append(code[place])
                place += 1
            }
        }
        isComplete = false
    }
}

/// The SQL in the text literals of Swift code.
private enum SQLText {
    /// The keywords of SQL, a comparison with a bound value, or a function.
    private static var isStatement: Regex<Substring> {
        #/\b(?:SELECT|INSERT|REPLACE|UPDATE|DELETE|FROM|WHERE|JOIN|SET|EXISTS|AND|OR|NOT|IS|IN|BETWEEN|LIKE|VALUES|ORDER BY|GROUP BY|LIMIT|CASE|WHEN|CAST|NULL|PRAGMA|RETURNING)\b|[=<>(,]\s*(?:\?|:[a-z])|\b[a-z_]+\(/#
    }

    private static var forms: [(name: String, form: Regex<Substring>)] {
        [
            ("INSERT OR", #/\bINSERT OR\b|\bREPLACE INTO\b/#), ("iif", #/\biif\s*\(/#), ("total", #/\btotal\s*\(/#),
            ("IS with a value", #/\bIS (?:NOT )?(?!NOT\b|NULL\b|DISTINCT\b|TRUE\b|FALSE\b)\S/#),
            ("INDEXED BY", #/\bINDEXED BY\b/#), ("LIMIT -1", #/\bLIMIT -/#),
            ("last_insert_rowid", #/\blast_insert_rowid\b/#), ("rowid", #/\browid\b/#),
            ("sum of conditions", #/\bsum\s*\(\s*(?!CASE\b)[^()]*(?:[=<>]|\bIS\b|\bNOT\b)/#),
            // PostgreSQL reads the name of the connection's user.
            ("user without a table", #/(?:^|[^\w.":])user\b(?![":])/#),
            // Another store has Booleans there, and no numbers.
            (
                "number for a Boolean",
                #/\b(?:is|has|needs)_\w+\s*(?:=|<>|!=|<|>)\s*[01]\b|\bCASE\s+[\w.]*(?:is|has|needs)_\w+\s+WHEN\b/#
            ),
            ("EXISTS as a number", #/=\s*EXISTS\b|\bVALUES\b[^;]*[,(]\s*EXISTS\b/#), ("AS BLOB", #/\bAS BLOB\b/#),
            ("blob", #/\bx'/#), ("GLOB", #/\bGLOB\b|\bMATCH\b/#), ("==", #/==/#),
            (
                "function",
                #/\b(?:instr|randomblob|zeroblob|hex|typeof|printf|unixepoch|strftime|julianday|group_concat|changes|quote|unicode|json_\w+)\s*\(/#
            ),
        ]
    }

    /// The statements about the file of SQLite.
    private static var formsOfFile: [(name: String, form: Regex<Substring>)] {
        [("PRAGMA", #/\bPRAGMA\b/#), ("table of SQLite", #/\bsqlite_\w+/#)]
    }

    static func findings(in source: String, ofStoreFile isOfStoreFile: Bool = false) -> [String] {
        var found = source.contains("lastInsertedRowID") ? ["lastInsertedRowID"] : []
        let searched = isOfStoreFile ? forms : forms + formsOfFile
        for statement in statements(in: source) {
            found += searched.filter { statement.contains($0.form.wordBoundaryKind(.simple)) }.map {
                "\($0.name) in \(statement)"
            }
            if hasScalarExtreme(statement) { found.append("scalar min or max in \(statement)") }
            let nulls = statement.matches(of: #/(?<before>\S+) NOT NULL\b/#)
            if nulls.contains(where: { $0.before != "IS" }) { found.append("NOT NULL without IS in \(statement)") }
        }
        return found
    }

    /// Returns the literals that resemble SQL or a part of it.
    static func statements(in source: String) -> [String] {
        let pattern = isStatement
        return SwiftLiterals(in: source).found.filter {
            $0.contains(pattern) && $0.contains(#/\b[a-z_]+\b/#.wordBoundaryKind(.simple))
                && !$0.contains(#/^\s*[A-Z][a-z]/#)
        }
    }

    /// Whether min or max has several arguments.
    private static func hasScalarExtreme(_ statement: String) -> Bool {
        statement.matches(of: #/\b(?:max|min)\s*\(/#).contains { match in
            var depth = 1
            for character in statement[match.range.upperBound...] {
                switch character {
                case "(": depth += 1
                case ")": depth -= 1
                case "," where depth == 1: return true
                default: break
                }
                if depth == 0 { break }
            }
            return false
        }
    }
}
