import ArgumentParser
import Testing

@testable import CarillonCommand

struct SendContentTests {
    @Test(arguments: [
        (["http://e/push/x", "hello"], SendCommand.Content.text("hello")),
        (["http://e/push/x", ""], .text("")),
        (["http://e/push/x", "-"], .standardInput(isNamed: true)),
        (["http://e/push/x", "--file", "-"], .standardInput(isNamed: true)),
        (["http://e/push/x", "--file", "f"], .file("f")),
        (["--encrypt-for", "s", "hello"], .text("hello")),
        (["--encrypt-for", "s", "-"], .standardInput(isNamed: true)),
    ])
    func `the message comes from the place that the options name`(arguments: [String], content: SendCommand.Content) throws {
        #expect(try SendCommand.parse(arguments).source == content)
    }

    @Test func `a text and a file are one too many`() {
        #expect(throws: (any Error).self) { try SendCommand.parse(["http://e/push/x", "hello", "--file", "f"]) }
    }
}
