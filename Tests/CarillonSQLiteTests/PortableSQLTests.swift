import Foundation
import TestSupport
import Testing

/// The statements outside the hot folders have no form that only SQLite accepts, so that another store can use their text.
struct PortableSQLTests {
    /// Folders whose SQL is written for SQLite alone.
    private static let hotFolders = ["Inbox", "Pushes", "LeasedWork", "Schema"]
    private static let source = "Sources/CarillonSQLite"
    /// The file that has the hints for SQLite.
    private static let hints = "Store/IndexHint.swift"

    @Test func `no statement has a form that only SQLite accepts`() throws {
        let root = PageCode.root.appending(path: Self.source)
        var statements = 0
        for file in try FileManager.default.subpathsOfDirectory(atPath: root.path).sorted()
        where file.hasSuffix(".swift") && file != Self.hints {
            guard !Self.hotFolders.contains(where: { file.hasPrefix("\($0)/") }) else { continue }
            let text = try String(contentsOf: root.appending(path: file), encoding: .utf8)
            statements += SQLText.statements(in: text).count
            let findings = SQLText.findings(in: text)
            #expect(findings.isEmpty, "\(file): \(findings.joined(separator: "; "))")
        }
        #expect(statements > 250, "the sources are not read")
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
        "SELECT 1 FROM item LIMIT -1 OFFSET 1", "SELECT last_insert_rowid() FROM item",
    ])
    func `a form that only SQLite accepts is found`(statement: String) {
        let multiline = "\"\"\"\n    \(statement)\n    \"\"\""
        #expect(SQLText.findings(in: "try db.run(\"\(statement)\")").count == 1)
        #expect(SQLText.findings(in: "try db.run(\n    \(multiline), [name(\"a\")])").count == 1)
    }

    @Test func `the serial of the last row is found`() {
        #expect(SQLText.findings(in: "return db.lastInsertedRowID") == ["lastInsertedRowID"])
    }

    @Test(arguments: [
        #""SELECT max(a), min(b) FROM item WHERE c IS NOT NULL AND d IS NULL""#,
        #""SELECT sum(CASE WHEN a > b THEN 1 ELSE 0 END) FROM item""#, #""SELECT count(*) FROM a LIMIT \(max(1, limit))""#,
        "// INSERT OR IGNORE INTO item\nlet a = max(1, 2)", #""The value IS text and NOT NULL.""#,
        #""SELECT coalesce(max(a), 0) FROM item LIMIT 1 OFFSET ?""#,
    ])
    func `other forms are not found`(source: String) {
        #expect(SQLText.findings(in: source).isEmpty)
    }
}

/// The SQL in the text literals of Swift code.
private enum SQLText {
    private static var literal: Regex<Substring> { #/"""(?s:.*?)"""|"(?:\\.|[^"\\\n])*"/# }
    private static var isStatement: Regex<Substring> {
        #/\b(?:SELECT|INSERT|REPLACE|UPDATE|DELETE|FROM|WHERE|EXISTS|AND|VALUES|ORDER BY|CASE WHEN)\b/#
    }

    private static var forms: [(name: String, form: Regex<Substring>)] {
        [
            ("INSERT OR", #/\bINSERT OR\b|\bREPLACE INTO\b/#), ("iif", #/\biif\s*\(/#), ("total", #/\btotal\s*\(/#),
            ("IS with a value", #/\bIS (?:NOT )?(?!NOT\b|NULL\b|DISTINCT\b|TRUE\b|FALSE\b)\S/#),
            ("INDEXED BY", #/\bINDEXED BY\b/#), ("LIMIT -1", #/\bLIMIT -/#),
            ("last_insert_rowid", #/\blast_insert_rowid\b/#),
            ("sum of conditions", #/\bsum\s*\(\s*(?!CASE\b)[^()]*(?:[=<>]|\bIS\b|\bNOT\b)/#),
        ]
    }

    static func findings(in source: String) -> [String] {
        var found = source.contains("lastInsertedRowID") ? ["lastInsertedRowID"] : []
        for statement in statements(in: source) {
            found += forms.filter { statement.contains($0.form) }.map { "\($0.name) in \(statement)" }
            if hasScalarExtreme(statement) { found.append("scalar min or max in \(statement)") }
            let nulls = statement.matches(of: #/(?<before>\S+) NOT NULL\b/#)
            if nulls.contains(where: { $0.before != "IS" }) { found.append("NOT NULL without IS in \(statement)") }
        }
        return found
    }

    /// Returns the literals that are SQL, with an x for each interpolated value.
    static func statements(in source: String) -> [String] {
        let code = source.split(separator: "\n", omittingEmptySubsequences: false)
            .filter { !$0.drop(while: \.isWhitespace).hasPrefix("//") }.joined(separator: "\n")
        return withoutInterpolations(code).matches(of: literal).map { String($0.output) }
            .filter { $0.contains(isStatement) && $0.contains(#/\b[a-z_]+\b/#) && !$0.contains(#/^"[A-Z][a-z]/#) }
    }

    private static func withoutInterpolations(_ code: String) -> String {
        var text = ""
        var depth = 0
        var isEscaped = false
        for character in code {
            if depth > 0 {
                depth += character == "(" ? 1 : character == ")" ? -1 : 0
            } else if isEscaped, character == "(" {
                text.removeLast()
                text += "x"
                depth = 1
            } else {
                text.append(character)
            }
            isEscaped = character == "\\" && !isEscaped && depth == 0
        }
        return text
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
