import Foundation
import TestSupport
import Testing

/// The kind of store is chosen by the executable, and for tests by the maker of their stores. The server and its tests name none.
struct StoreChoiceTests {
    private static var name: Regex<Substring> { #/(?i:SQL[i]te|\bGRD[B]\b)/# }
    /// Names that are not a store of the server: the file of the client library, the content of an app that the tests and the
    /// guide use, and a package that the guide installs.
    private static var exceptions: Regex<Substring> {
        #/carillon-client\.\w+|\bSQL[i]teContent\b|/content\.sql[i]te\b|\blibsql[i]te3-dev\b/#
    }
    private static var statements: [Regex<Substring>] {
        [
            #/\bSELECT\s+[\w(*]/#, #/\bINSERT\s+(?:INTO|OR)\b/#, #/\bUPDATE\s+\w+\s+SET\b/#, #/\bDELETE\s+FROM\b/#,
            #/\b(?:CREATE|DROP|ALTER)\s+(?:TABLE|TRIGGER|INDEX|VIEW)\b/#, #/\bPRAGMA\s+\w/#,
        ]
    }

    /// The lines of a text that name a kind of store or contain SQL.
    private static func findings(in text: String) -> [String] {
        let patterns = [name] + statements
        return text.split(separator: "\n").map(String.init).filter { line in
            let rest = line.replacing(exceptions, with: "")
            return patterns.contains { rest.contains($0) }
        }
    }

    private static func files(in folder: String) throws -> [String] {
        try FileManager.default.subpathsOfDirectory(atPath: PageCode.root.appending(path: folder).path)
            .filter { $0.hasSuffix(".swift") }.map { "\(folder)/\($0)" }
    }

    private static func text(of file: String) throws -> String {
        try String(contentsOf: PageCode.root.appending(path: file), encoding: .utf8)
    }

    static let folders = [
        ("Sources/CarillonServer", 50), ("Tests/CarillonServerTests", 100), ("Tests/StoreConformance", 20),
        ("Tests/StoreWorkload", 8), ("Tests/EndToEndTests", 30), ("Tests/CarillonCommandTests", 20),
    ]

    @Test(arguments: folders)
    func `no file names a kind of store or contains SQL`(folder: String, atLeast: Int) throws {
        let files = try Self.files(in: folder)
        #expect(files.count >= atLeast)
        for file in files {
            let findings = Self.findings(in: try Self.text(of: file))
            #expect(findings.isEmpty, "\(file): \(findings.joined(separator: "; "))")
        }
    }

    @Test func `one file of the executable names the kind of store`() throws {
        let files = try Self.files(in: "Sources/CarillonCommand").filter { file in
            try Self.text(of: file).contains(Self.name)
        }
        #expect(files == ["Sources/CarillonCommand/Composition.swift"])
    }

    @Test(arguments: [
        "import Carillon" + "SQL" + "ite", "try SQL" + "iteStore(inMemory: .init())", "import GR" + "DB",
        "SEL" + "ECT count(*) FROM item", "INS" + "ERT OR IGNORE INTO item", "INS" + "ERT INTO item VALUES (1)",
        "UPD" + "ATE item SET version = 1", "DEL" + "ETE FROM item", "CRE" + "ATE TRIGGER no BEFORE",
        "PRA" + "GMA synchronous", "directory + \"/carillon.sql" + "ite-wal\"", "a carillon-client.file of sql" + "ite",
    ])
    func `a line with a kind of store or with SQL is found`(line: String) {
        #expect(Self.findings(in: "let a = 1\n    \(line)\n") == ["    \(line)"])
    }

    @Test(arguments: [
        "DELETE /v1/device", "UPDATE", "store.update(id)", "select(1)", "directory + \"/carillon-client.sql" + "ite-wal\"",
        "try SQL" + "iteContent(path: directory + \"/content.sql" + "ite\")", "libsql" + "ite3-dev",
    ])
    func `other lines are not found`(line: String) {
        #expect(Self.findings(in: line).isEmpty)
    }
}
