import ArgumentParser
import CarillonServer
import Foundation
import Testing

@testable import CarillonCommand

struct ServeOptionsTests {
    private func file(_ text: String) throws -> String {
        let path = NSTemporaryDirectory() + "/carillon-\(UUID().uuidString).json"
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        return path
    }

    private func refusal(_ variables: [String: String], file: String? = nil) -> CommandFault? {
        do {
            _ = try ServeOptions(flags: ["data": "/d"], file: file, environment: variables).settings()
            return nil
        } catch {
            return error as? CommandFault
        }
    }

    @Test func `an option overrides the environment, and the environment overrides the file`() throws {
        let path = try file(#"{"listen": "127.0.0.1:1", "max-sockets": 3, "public-url": "http://f", "dev": true}"#)
        defer { try? FileManager.default.removeItem(atPath: path) }
        let options = try ServeOptions(
            flags: ["data": "/d", "listen": "127.0.0.1:3"], file: nil,
            environment: [
                "CARILLON_CONFIG": path, "CARILLON_LISTEN": "127.0.0.1:2", "CARILLON_PUBLIC_URL": "http://e",
                "CARILLON_DATA": "/e",
            ])
        let settings = try options.settings()
        #expect(settings.port == 3)
        #expect(settings.publicURL == "http://e")
        #expect(settings.maximumSockets == 3)
        #expect(settings.dataDirectory == "/d")
        #expect(settings.anonymousApp == "anonymous")
    }

    @Test func `a Unix socket is listened on, and needs a public address`() throws {
        let variables = ["CARILLON_LISTEN": "unix:/run/carillon/socket", "CARILLON_PUBLIC_URL": "https://push.example.com"]
        let settings = try ServeOptions(flags: ["data": "/d"], file: nil, environment: variables).settings()
        #expect(settings.listenPlaces == [.unix(path: "/run/carillon/socket")])
        #expect(refusal(["CARILLON_LISTEN": "unix:/run/s"])?.message.contains("\"public-url\"") == true)
        for path in ["", "run/s", "/" + String(repeating: "s", count: 103), "/s\0"] {
            let fault = refusal(["CARILLON_LISTEN": "unix:\(path)", "CARILLON_PUBLIC_URL": "https://push.example.com"])
            #expect(fault?.code == .validationFailure && fault?.message.contains("\"listen\"") == true, "\(path)")
        }
    }

    @Test(arguments: [
        ("CARILLON_PUBLIC_ULR", "CARILLON_PUBLIC_URL"), ("CARILLON_MAX_SOCKET", "CARILLON_MAX_SOCKETS"),
        ("CARILLON_LISTENER", "CARILLON_LISTEN"), ("CARILLON_public_url", "CARILLON_PUBLIC_URL"),
        ("CARILLON_INBOX-BYTES", "CARILLON_INBOX_BYTES"),
    ])
    func `an unknown variable is refused with the nearest known one`(variable: String, nearest: String) throws {
        let fault = try #require(refusal([variable: "x"]))
        #expect(fault.code == .validationFailure)
        #expect(fault.message.contains("\(variable) "))
        #expect(fault.message.contains("\(nearest)?"))
    }

    @Test(arguments: [
        (#"{"public_url": "http://x"}"#, ["\"public_url\"", "\"public-url\"?"]),
        (#"{"max-sokets": 3}"#, ["\"max-sokets\"", "\"max-sockets\"?"]),
        (#"{"max-sockets": 3.5}"#, ["max-sockets", "a whole number"]),
        (#"{"max-sockets": [3]}"#, ["max-sockets", "a whole number"]),
        (#"{"max-sockets": ["3"]}"#, ["max-sockets", "a whole number"]),
        (#"{"listen": ["127.0.0.1:1"]}"#, ["listen", "a text"]),
        (#"{"former-public-urls": [3]}"#, ["former-public-urls", "an array of texts"]),
        (#"{"outward": {"ca": "x"}}"#, ["outward", "a text"]),
        (#"["listen"]"#, ["JSON object"]), ("{", ["JSON object"]),
    ])
    func `a file with anything else in it is refused, and the place is named`(text: String, words: [String]) throws {
        let path = try file(text)
        defer { try? FileManager.default.removeItem(atPath: path) }
        let fault = try #require(refusal([:], file: path))
        for word in words + [path] { #expect(fault.message.contains(word), "\(fault.message)") }
    }

    @Test func `a list in the file is an array, or a text with commas`() throws {
        for list in [#"["https://a.example", "https://b.example"]"#, #""https://a.example,https://b.example""#] {
            let path = try file(#"{"former-public-urls": \#(list), "allowed-origins": ["https://a.example"]}"#)
            defer { try? FileManager.default.removeItem(atPath: path) }
            let settings = try ServeOptions(flags: ["data": "/d"], file: path, environment: [:]).settings()
            #expect(settings.formerPublicURLs == ["https://a.example", "https://b.example"])
            #expect(settings.allowedOrigins != AllowedOrigins.none)
        }
    }

    @Test func `variables of other programs in the environment are ignored`() {
        let variables = [
            "CARILLON_SERVER", "CARILLON_KEY", "CARILLON_APNS_PASSPHRASE", "CARILLON_SERVICE_HOST",
            "CARILLON_SERVICE_PORT_HTTP", "CARILLON_PORT", "CARILLON_PORT_8080_TCP", "CARILLON_PORT_8080_TCP_ADDR", "PATH",
        ]
        #expect(refusal(Dictionary(uniqueKeysWithValues: variables.map { ($0, "x") })) == nil)
        #expect(refusal(["CARILLON_PORT_8080": "x"]) != nil)
    }
}
