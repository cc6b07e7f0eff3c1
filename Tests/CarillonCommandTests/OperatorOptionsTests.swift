import ArgumentParser
import Testing

@testable import CarillonCommand

struct OperatorOptionsTests {
    private func side(_ arguments: [String], _ environment: [String: String]) throws -> OperatorOptions.Side? {
        // Parsed with a side, so that the process's own environment plays no part.
        var options = try OperatorOptions.parse(arguments.isEmpty ? ["--data", "/d"] : arguments)
        if arguments.isEmpty { options.data = nil }
        return try? options.side(environment)
    }

    @Test func `the command line goes before the environment`() throws {
        let both = ["CARILLON_DATA": "/e", "CARILLON_SERVER": "http://e"]
        #expect(try side(["--data", "/d"], both) == .directory("/d"))
        #expect(try side(["--server", "http://s"], both) == .server("http://s"))
        #expect(try side([], both) == nil)
        #expect(try side([], ["CARILLON_DATA": "/e"]) == .directory("/e"))
        #expect(try side([], ["CARILLON_SERVER": "http://e"]) == .server("http://e"))
        #expect(try side([], [:]) == nil)
        #expect(throws: (any Error).self) { try OperatorOptions.parse(["--data", "/d", "--server", "http://s"]) }
    }
}
