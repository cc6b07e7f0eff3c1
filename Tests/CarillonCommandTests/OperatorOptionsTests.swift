import ArgumentParser
import Testing

@testable import CarillonCommand

struct OperatorOptionsTests {
    private func side(_ arguments: [String], _ environment: [String: String]) throws -> OperatorOptions.Side? {
        // Parsed with an explicit server, so that the environment of the process has no effect.
        var options = try OperatorOptions.parse(arguments.isEmpty ? ["--data", "/d"] : arguments)
        if arguments.isEmpty { options.data = nil }
        return try? options.side(environment)
    }

    @Test func `the command line overrides the environment`() throws {
        let both = ["CARILLON_DATA": "/e", "CARILLON_SERVER": "http://e"]
        #expect(try side(["--data", "/d"], both) == .directory("/d"))
        #expect(try side(["--server", "http://s"], both) == .server("http://s"))
        #expect(try side([], both) == nil)
        #expect(try side([], ["CARILLON_DATA": "/e"]) == .directory("/e"))
        #expect(try side([], ["CARILLON_SERVER": "http://e"]) == .server("http://e"))
        #expect(try side([], [:]) == nil)
        #expect(throws: (any Error).self) { try OperatorOptions.parse(["--data", "/d", "--server", "http://s"]) }
    }

    @Test(arguments: ["http://s/?a=b", "http://u@s", "s", "http://s:0", "http://s\n", ""])
    func `an address that is none is refused, in an option and in a variable`(address: String) throws {
        let error = #expect(throws: (any Error).self) { try OperatorOptions.parse(["--server", address]) }
        let refusal = try #require(error)
        #expect(OperatorOptions.exitCode(for: refusal) == .validationFailure)
        #expect(OperatorOptions.message(for: refusal).contains("--server must"))
        #expect(try side([], ["CARILLON_SERVER": address]) == nil)
    }

    @Test(arguments: ["http://s/push/t#f", "http://u@s/push/t", "http://s s/push/t", "http:///push/t", "http://s:0/push/t"])
    func `an endpoint that is no address is refused`(endpoint: String) throws {
        let error = #expect(throws: (any Error).self) { try SendCommand.parse([endpoint, "Hello"]) }
        #expect(SendCommand.message(for: try #require(error)).contains("The endpoint must"))
        _ = try SendCommand.parse(["https://s/push/t?up=1", "Hello"])
    }
}
