import ArgumentParser
import AsyncHTTPClient
import CarillonClient
import Foundation
import NIOCore
import NIOHTTP1
import NIOSSL
import Testing

@testable import CarillonCommand

/// The errors of commands for requests that have no answer, and for unexpected errors.
struct RequestFailureTests {
    /// Texts that no sentence contains: names of types, of files and of error numbers.
    private func isPlain(_ text: String) -> Bool {
        !["NIO", "HTTPClientError", "BoringSSL", "errno", "Error(", ".swift", "_", "Context"].contains { text.contains($0) }
    }

    private static let errors: [(any Error, String)] = [
        (HTTPClientError.connectTimeout, "no answer in time"), (HTTPClientError.remoteConnectionClosed, "was closed"),
        (HTTPClientError.invalidURL, "the address is not a valid URL"), (HTTPClientError.emptyHost, "not a valid URL"),
        (HTTPClientError.contentLengthMissing, "content length missing"), (HTTPClientError.cancelled, "cancelled"),
        (IOError(errnoCode: ECONNREFUSED, reason: "connection reset (error set)"), "connection refused"),
        (NIOSSLError.uncleanShutdown, "was closed"), (NIOTooManyBytesError(maxBytes: 1), "too large"),
    ]

    @Test(arguments: 0..<9) func `an error of a request has a sentence`(_ number: Int) {
        let (error, text) = Self.errors[number]
        let sentence = RequestFailure.sentence(error)
        #expect(sentence.contains(text) && !sentence.hasSuffix(".") && isPlain(sentence), "\(sentence)")
        #expect(isPlain(FaultSentence.of(error)))
    }

    @Test func `an error that no command expects has a sentence, too`() throws {
        struct Strange: Error { var text = "secret" }
        #expect(FaultSentence.of(Strange()) == "an unexpected error (Strange)")
        let unread = #expect(throws: DecodingError.self) {
            try JSONDecoder().decode([String: Int].self, from: Data(#"{"a":"b"}"#.utf8))
        }
        let decoding = try #require(unread)
        #expect(isPlain(FaultSentence.of(decoding)))
        let reading = #expect(throws: CocoaError.self) { try Data(contentsOf: URL(filePath: "/does/not/exist")) }
        let missing = try #require(reading)
        let sentence = FaultSentence.of(missing)
        #expect(!sentence.contains("Domain="), "\(sentence)")
        #expect(FaultSentence.of(PushError(.fileInvalid, "A file is none.")).contains("A file is none."))
    }

    @Test func `a server that is not there is named without the path, which can be a token`() async throws {
        let client = APIClient(server: "", key: nil)
        let fault = await #expect(throws: CommandFault.self) {
            try await client.send(.GET, "http://127.0.0.1:1/push/token-of-a-channel")
        }
        #expect(fault?.code == ExitStatus.unreachable)
        #expect(fault?.message.hasPrefix("http://127.0.0.1:1 cannot be reached: connection refused. Check") == true)
        #expect(fault?.message.contains("token-of-a-channel") == false)
    }

    @Test(arguments: ["no certificate", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", ""])
    func `a file without a certificate is refused as authority`(_ text: String) async throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("ca-\(UUID().uuidString).pem").path
        try text.write(toFile: file, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(atPath: file) }
        let client = APIClient(server: "https://127.0.0.1:1", key: nil, authority: file)
        let fault = await #expect(throws: CommandFault.self) { try await client.send(.GET, "/health/live") }
        #expect(fault?.code == ExitStatus.noInput)
        #expect(fault?.message.contains("of --ca ") == true)
        #expect(fault?.message.contains("must be certificates in PEM form") == true)
    }

    @Test func `the library's name of the option is the command's`() {
        let fault = CommandFault(PushError(.configurationInvalid, "trustRootsPath: /x is not a readable PEM file."))
        #expect(fault.message == "--ca: /x is not a readable PEM file.")
        #expect(fault.code == ExitStatus.noInput)
    }

    @Test func `every command that calls a server accepts an authority`() throws {
        let server = ["--server", "https://push.example.com", "--ca", "/ca.pem"]
        #expect(try OperatorOptions.parse(server).authority.file == "/ca.pem")
        #expect(try PublisherOptions.parse(server).authority.file == "/ca.pem")
        #expect(try SubscriptionsCommand.Options.parse(server).authority.file == "/ca.pem")
        #expect(try TransferOptions.parse(server + ["--state", "s"]).authority.file == "/ca.pem")
        #expect(try ServiceOptions.parse(server + ["--state", "s", "--app", "a"]).authority.file == "/ca.pem")
        #expect(try HealthCommand.parse(server).authority.file == "/ca.pem")
        let listen = ["--app", "a", "--channel", "c", "--state", "s"]
        #expect(try ListenCommand.parse(server + listen).authority.file == "/ca.pem")
        #expect(try SendCommand.parse(["https://h/push/t", "x", "--ca", "/ca.pem"]).authority.file == "/ca.pem")
    }
}
