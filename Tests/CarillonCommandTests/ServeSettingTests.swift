import ArgumentParser
import CarillonCore
import CarillonServer
import Foundation
import Testing

@testable import CarillonCommand

/// The table of settings, and its effects.
struct ServeSettingTests {
    private func settings(_ values: [String: String]) throws -> ServerSettings {
        try ServeOptions(flags: ["data": "/d"].merging(values) { $1 }, file: nil, environment: [:]).settings()
    }

    private func refusal(_ values: [String: String]) -> CommandFault? {
        do {
            _ = try settings(values)
            return nil
        } catch {
            return error as? CommandFault
        }
    }

    @Test func `no two settings have one name`() {
        let repeated = Dictionary(grouping: ServeSetting.names) { $0 }.filter { $0.value.count > 1 }
        #expect(repeated.isEmpty, "\(repeated.keys.sorted())")
        #expect(ServeSetting.names.count > 60)
    }

    @Test func `the table of the documentation is that of the settings`() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let page = try String(contentsOf: root.appendingPathComponent("docs/command-line.md"), encoding: .utf8)
        let lines = page.split(separator: "\n", omittingEmptySubsequences: false).map { String($0) }
        let head = try #require(lines.firstIndex(of: "| Name | Option | Default | Values | Meaning |"))
        let rows = Array(lines[(head + 2)...].prefix { $0.hasPrefix("|") })
        let expected = ServeSetting.all.map { setting in
            let cells = [
                "`\(setting.name)`", setting.isOption ? "`--\(setting.name)`" : "", setting.standard ?? "", setting.values,
                setting.description,
            ]
            return "|" + cells.map { $0.isEmpty ? " |" : " \($0) |" }.joined()
        }
        for (row, expected) in zip(rows, expected) { #expect(row == expected) }
        #expect(rows.count == expected.count)
    }

    @Test func `the help has each setting, its values and its default, without the marks of Markdown`() {
        let help = ServeCommand.helpMessage(columns: 10_000)
        for setting in ServeSetting.all {
            #expect(help.contains(setting.isOption ? "  --\(setting.name)" : "  \(setting.name): "), "\(setting.name)")
            if !setting.isOption { #expect(help.contains(setting.values), "\(setting.name)") }
        }
        #expect(help.contains("a whole number from 1 to 15; default: 10"))
        #expect(!help.contains("](") && !help.contains("`"))
    }

    @Test func `the number of homes is an option that the help does not show`() throws {
        #expect(!ServeCommand.helpMessage(columns: 10_000).contains("--homes"))
        #expect(try ServeCommand.parse(["--homes", "2"]).homes == 2)
        #expect(try ServeCommand.parse([]).homes == 1)
    }

    @Test func `each option of the command line is passed on`() throws {
        let flags = ["dev", "anonymous-devices", "allow-private-addresses"]
        let options = ServeSetting.all.filter { $0.isOption }.map(\.name)
        let arguments = options.flatMap { flags.contains($0) ? ["--\($0)"] : ["--\($0)", "x-\($0)"] }
        let command = try ServeCommand.parse(arguments)
        for name in options { #expect(command.flags[name] == (flags.contains(name) ? "true" : "x-\(name)")) }
        #expect(command.flags.count == options.count)
    }

    @Test func `the time for an answer and the time for the answer of a backend are two settings`() throws {
        let both = try settings(["answer-seconds": "31", "callback-answer-seconds": "9"])
        #expect(both.requests.answerSeconds == 31)
        #expect(both.outward.answerSeconds == 9)
        let one = try settings(["answer-seconds": "10"])
        #expect(one.requests.answerSeconds == 10)
        #expect(one.outward.answerSeconds == OutwardSettings().answerSeconds)
        #expect(try settings(["answer-seconds": "30"]).requests.answerSeconds == 30)
    }

    @Test(arguments: [
        ("callback-answer-seconds", "16", "a whole number from 1 to 15"),
        ("shortest-ping-seconds", "86401", "a whole number from 1 to 86400"),
        ("max-sockets", "0", "a whole number from 1 to 10000000"), ("max-sockets", "-1", "a whole number"),
        ("max-sockets", "10000001", "a whole number"), ("max-sockets", "99999999999999999999", "a whole number"),
        ("anonymous-per-address", "x", "a whole number"), ("attachment-bytes", "1.5", "a whole number"),
        ("channel-rate", "0:1", "PER_SECOND:AT_ONCE"), ("channel-rate", "1:2:3", "PER_SECOND:AT_ONCE"),
        ("channel-rate", "", "PER_SECOND:AT_ONCE"), ("upload-resumption", "true", "on or off"),
        ("dev", "maybe", "true or false"), ("anonymous-app", "a b", "the name of an app"),
        ("log", "loud", "trace, debug"),
    ])
    func `a wrong value ends the start with a sentence about its setting alone`(
        name: String, value: String, values: String
    ) throws {
        let fault = try #require(refusal([name: value]))
        #expect(fault.code == .validationFailure)
        #expect(fault.message.hasPrefix("\"\(name)\" must be \(values)"), "\(fault.message)")
        #expect(fault.message.hasSuffix(", not \"\(value)\"."), "\(fault.message)")
        for other in ServeSetting.names where other != name { #expect(!fault.message.contains("\"\(other)\"")) }
    }

    /// The settings that are the address of a server, and those that are a host and a port.
    private static let urls = ["public-url", "former-public-urls"]
    private static let places = ["listen", "metrics-listen", "apns-production", "apns-sandbox", "apns-proxy"]

    @Test(arguments: [
        ("https://push.example.com\r\n", "must not have control characters"),
        ("https://push.example.com\u{0}", "must not have control characters"),
        ("https://push.example.com/?a=b", "must not have a query"), ("https://push.example.com?", "must not have a query"),
        ("https://push.example.com/#f", "must not have a fragment"),
        ("https://user:password@push.example.com", "must not have a user name or a password"),
        ("https://push .example.com", "must not have white space"),
        ("https://", "must have a host"), ("http:///x", "must have a host"), ("https://:443", "must have a host"),
        ("https://push.example.com:99999", "must have a port from 1 to 65535"),
        ("https://push.example.com:0", "must have a port from 1 to 65535"),
        ("https://push.example.com:", "must have a port from 1 to 65535"),
        ("https://push.example.com\\x", "must not have a backslash"),
        ("https://push.example.com/a,b", "must "),
        ("https://push.example.com/a<b>", "must have a path of"), ("https://push.example.com/%4", "must have a path of"),
        ("ftp://push.example.com", "must begin with http:// or https://"), ("push.example.com", "must begin with"),
        ("https://bücher.example", "must be ASCII"),
    ])
    func `a part that the address of a server cannot have is named`(text: String, part: String) throws {
        for name in Self.urls {
            let fault = try #require(refusal([name: text]), "\(name)")
            #expect(fault.code == .validationFailure)
            #expect(fault.message.hasPrefix("\"\(name)\" must be ") && fault.message.contains(part), "\(fault.message)")
            #expect(!fault.message.contains("password@"))
        }
        let servers: [() throws -> String] = [
            { try ServerChoice.url(text) }, { try ServerChoice.urlOrSocket(text, standard: "http://h") },
        ]
        for server in servers {
            let error = #expect(throws: ValidationError.self) { try server() }
            #expect(error?.message.hasPrefix("--server ") == true && error?.message.contains(part) == true)
            #expect(error?.message.contains("password@") == false)
        }
    }

    @Test func `a Unix socket returns the health of its server`() throws {
        #expect(try ServerChoice.urlOrSocket("unix:/run/carillon/socket", standard: "x") == "unix:/run/carillon/socket")
        #expect(throws: ValidationError.self) { try ServerChoice.urlOrSocket("unix:run/socket", standard: "http://h") }
        #expect(throws: ValidationError.self) { try ServerChoice.url("unix:/run/carillon/socket") }
    }

    @Test(arguments: [
        ("", "not an origin"), ("app.example.com", "not an origin"), ("https://app.example.com/path", "not an origin"),
        ("https://app.example.com:99999", "must have a port from 1 to 65535"), ("https://", "must have a host"),
        ("https://user:password@app.example.com", "must not have a user name or a password"),
        ("https://app.example.com#f", "must not have a fragment"),
    ])
    func `a part that an origin cannot have is named`(text: String, part: String) throws {
        for list in ["https://good.example, \(text)", "\(text), https://good.example"] {
            let fault = try #require(refusal(["allowed-origins": list]))
            #expect(fault.code == .validationFailure)
            #expect(fault.message.hasPrefix("\"allowed-origins\" must be origins such as"), "\(fault.message)")
            #expect(fault.message.contains(part) && !fault.message.contains("password@"), "\(fault.message)")
        }
    }

    @Test(arguments: [
        ("h", "must have a port"), ("8080", "must have a port"), ("[::1]", "must have a port"),
        ("h:0", "must have a port from 1 to 65535"), ("h:65536", "must have a port from 1 to 65535"),
        ("h:", "must have a port from 1 to 65535"), ("h:1\r\n", "control characters"), ("h :1", "white space"),
        (":1", "must have a host"), ("::1:1", "must have a host"), ("u:p@h:1", "user name or a password"),
        ("http://h:1", "must not have a scheme"), ("h:1/", "a path"), ("h:1?a", "a query"), ("h:1#f", "a fragment"),
    ])
    func `a part that a host and port cannot have is named`(text: String, part: String) throws {
        // A number alone is a port of this machine there.
        for name in Self.places where !(name == "metrics-listen" && text == "8080") {
            let fault = try #require(refusal([name: text]), "\(name)")
            #expect(fault.code == .validationFailure)
            #expect(fault.message.hasPrefix("\"\(name)\" must be HOST:PORT"), "\(fault.message)")
            #expect(fault.message.contains(part), "\(fault.message)")
        }
    }

    @Test(arguments: [
        ("https://push.example.com", "https://push.example.com"), ("HTTPS://Push.Example.com/", "https://push.example.com"),
        ("https://push.example.com:443//", "https://push.example.com"), ("http://h:80/a", "http://h/a"),
        ("https://example.com:8443/Push-Server/", "https://example.com:8443/Push-Server"),
        ("http://[::1]:8080", "http://[::1]:8080"), ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("https://h/a%2Fb", "https://h/a%2Fb"),
    ])
    func `the address of a server has one form`(text: String, form: String) throws {
        #expect(try settings(["public-url": text]).publicURL == form)
        #expect(try ServerChoice.url(text) == form)
    }

    @Test func `former public URLs are a list of up to 16, with the rules of the present one`() throws {
        #expect(try settings([:]).formerPublicURLs == [])
        let two = try settings(["former-public-urls": "https://A.example/, https://b.example:443/x"])
        #expect(two.formerPublicURLs == ["https://a.example", "https://b.example/x"])
        let many = (1...17).map { "https://h\($0).example" }
        #expect(try settings(["former-public-urls": many.dropLast().joined(separator: ",")]).formerPublicURLs.count == 16)
        for texts in [many, many.map { $0.replacing("//", with: "//user:password@") }] {
            let fault = try #require(refusal(["former-public-urls": texts.joined(separator: ",")]))
            #expect(
                fault.code == .validationFailure && fault.message.contains("at most 16 URLs, not 17"), "\(fault.message)")
            #expect(!fault.message.contains("password@"))
        }
        #expect(try settings(["former-public-urls": ""]).formerPublicURLs == [])
        for list in [",", "https://a.example,", ",https://a.example", "https://a.example,,https://b.example", " "] {
            let fault = try #require(refusal(["former-public-urls": list]), "\(list)")
            #expect(fault.message.contains("must not have an empty element"), "\(fault.message)")
        }
        #expect(refusal(["former-public-urls": "https://a.example,https://b.example/?x"])?.message.contains("query") == true)
    }

    @Test func `a host and port are read, with IPv6 in brackets`() throws {
        let settings = try settings(["listen": "[::1]:81", "metrics-listen": "82"])
        #expect(settings.host == "::1" && settings.port == 81)
        #expect(settings.metrics?.host == "127.0.0.1" && settings.metrics?.port == 82)
    }

    @Test func `line ends behind a variable are removed, and nothing else`() throws {
        let values = Environment.withoutLineEnds(["A": "x\r\n", "B": "x\n\n", "C": " x \r", "D": "\r\nx", "E": "\r\n"])
        #expect(values == ["A": "x", "B": "x", "C": " x ", "D": "\r\nx", "E": ""])
        let options = try ServeOptions(
            flags: [:], file: nil,
            environment: [
                "CARILLON_DATA": "/d\n", "CARILLON_PUBLIC_URL": "https://push.example.com\r\n",
                "CARILLON_MAX_SOCKETS": "3\r\n",
            ])
        let settings = try options.settings()
        #expect(settings.dataDirectory == "/d")
        #expect(settings.publicURL == "https://push.example.com")
        #expect(settings.maximumSockets == 3)
    }

    @Test func `each number is written where its default is from`() throws {
        for setting in ServeSetting.all {
            guard let standard = setting.standard, let number = Int(standard) else { continue }
            let value = number == 1 ? 2 : number - 1
            var changed = ServerSettings(dataDirectory: "")
            let isRead = try setting.read(String(value), &changed)
            #expect(isRead, "\(setting.name)")
            let difference = Set(Self.leaves(of: changed)).subtracting(Self.leaves(of: ServerSettings(dataDirectory: "")))
            #expect(difference.map(\.value) == [String(value)], "\(setting.name)")
        }
    }

    private struct Leaf: Hashable {
        var path: String
        var value: String
    }

    /// All values of the settings, by their places.
    private static func leaves(of value: Any, at path: String = "") -> [Leaf] {
        let children = Mirror(reflecting: value).children
        if children.isEmpty { return [Leaf(path: path, value: "\(value)")] }
        return children.flatMap { leaves(of: $0.value, at: "\(path).\($0.label ?? "")") }
    }

    @Test func `rates are read with and without a number at once`() throws {
        let settings = try settings(["channel-rate": "7", "device-rate": "7:3", "app-rate": "off"])
        #expect(settings.rateLimits.channelMessages?.perSecond == 7 && settings.rateLimits.channelMessages?.burst == 70)
        #expect(settings.rateLimits.deviceMessages?.perSecond == 7 && settings.rateLimits.deviceMessages?.burst == 3)
        #expect(settings.rateLimits.appMessages == nil)
    }

    @Test func `options for development follow from one another`() throws {
        #expect(try settings([:]).anonymousApp == nil)
        #expect(try settings(["anonymous-app": "a"]).anonymousApp == nil)
        let development = try settings(["dev": "yes"])
        #expect(development.anonymousApp == "anonymous" && development.outward.rules.allowsPrivate)
        #expect(try settings(["anonymous-devices": "1", "anonymous-app": "a"]).anonymousApp == "a")
        #expect(try settings(["allow-private-addresses": "true"]).outward.rules.allowsPrivate)
        #expect(try !settings(["allow-private-addresses": "no"]).outward.rules.allowsPrivate)
        #expect(try settings(["max-transfers": "7"]).attachments.transfersOfApp == 3)
    }
}
