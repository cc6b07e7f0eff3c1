import ArgumentParser
import Foundation
import Testing

@testable import CarillonCommand

/// The errors of commands about a number that is too large for `Double`.
struct NumberOutOfRangeTests {
    private func fault(_ body: () throws -> Void) -> CommandFault? {
        do {
            try body()
            return nil
        } catch {
            return error as? CommandFault
        }
    }

    private func inFile(_ text: String, _ body: (String) throws -> Void) throws -> CommandFault? {
        let path = FileManager.default.temporaryDirectory.appending(path: "carillon-\(UUID().uuidString).json").path
        try Data(text.utf8).write(to: URL(filePath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        let fault = fault { try body(path) }
        #expect(fault?.message.contains(path) == true)
        return fault
    }

    @Test func `an error about a custom key has the number and its place`() {
        let fault = fault { _ = try CustomField("a=[1,1e999]") }
        #expect(fault?.code == .validationFailure)
        #expect(
            fault?.message == "--custom a: the number 1e999 in line 1, column 4 is out of range; the limit is 1.8e308")
    }

    @Test func `an error about a payload file has the number and its place`() throws {
        let fault = try inFile("{\"aps\":\n{\"badge\":1e999}}") { _ = try PayloadFile.read($0) }
        #expect(fault?.code == ExitStatus.refused)
        #expect(fault?.message.contains("1e999 in line 2, column 10") == true)
    }

    @Test func `an error about a Live Activity's state has the number and its place`() throws {
        func push(_ state: String) throws {
            let options = try NotificationOptions.parse(["--live-activity", "update", "--content-state", state])
            _ = try PreparedPush(options, topic: "com.example.app", channel: nil, now: Date())
        }
        let inline = fault { try push(#"{"score":1e999}"#) }
        #expect(inline?.message.hasPrefix("--content-state: the number 1e999 in line 1, column 10") == true)
        let read = try inFile(#"{"score":1e999}"#) { try push($0) }
        #expect(read?.code == ExitStatus.refused && read?.message.contains("line 1, column 10") == true)
    }

    @Test func `an error about a file of settings has the number and its place`() throws {
        let fault = try inFile("{\n\"port\": 1e999}") { _ = try ServeSources.file($0) }
        #expect(fault?.code == ExitStatus.noInput && fault?.message.contains("1e999 in line 2, column 9") == true)
    }

    @Test func `a field of an item with such a number is not sent as a text`() throws {
        _ = try ItemsCommand.Publish.parse(["stock", "price=1e99", "name=1e999x", "--server", "http://localhost"])
        let error = #expect(throws: (any Error).self) {
            try ItemsCommand.Publish.parse(["stock", "price=1e999", "--server", "http://localhost"])
        }
        let message = ItemsCommand.Publish.message(for: try #require(error))
        #expect(message.contains("\"price\"") && message.contains("1e999 in line 1, column 1"), "\(message)")
    }
}
