import CarillonBasics
import Foundation
import TestSupport
import Testing

/// Every command that prints answers of the API, against a server whose texts would control a terminal.
@Suite(.timeLimit(.minutes(5)))
struct HostileTextTests {
    /// Each character that is never printed, or a first and a last of a range.
    private static let unsafe: [Unicode.Scalar] =
        ["\u{0}", "\u{7}", "\u{8}", "\n", "\r", "\t", "\u{1B}", "\u{1F}", "\u{7F}", "\u{80}", "\u{9B}", "\u{9F}", "\u{61C}"]
        + ["\u{200E}", "\u{200F}", "\u{2028}", "\u{2029}", "\u{202A}", "\u{202E}", "\u{2066}", "\u{2069}"]

    /// As a text of JSON: characters that JSON must escape are escaped, and the others are unchanged.
    private static let text: String = {
        let parts = unsafe.map { scalar in
            scalar.value < 0x20
                ? #"\u00"# + (scalar.value < 16 ? "0" : "") + String(scalar.value, radix: 16) : String(Character(scalar))
        }
        return "\"R" + parts.joined(separator: "x") + "z\""
    }()

    private static func isUnsafe(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0...0x1F, 0x7F...0x9F, 0x61C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069: true
        default: false
        }
    }

    struct Case: Sendable, CustomTestStringConvertible {
        var arguments: [String]
        /// The body of an answer, in which each `H` between quotes is the hostile text.
        var answer: String
        var headers: [(name: String, value: String)] = []
        var input: String?
        /// Whether the answer's texts are printed, so that their escapes can be seen.
        var showsTexts = true

        var testDescription: String { arguments.joined(separator: " ") }
        var body: String { answer.replacing(#""H""#, with: HostileTextTests.text) }
    }

    private static let key = #"{"id":"H","role":"H","app":"H","name":"H","createdAt":"H","revokedAt":"H","secret":"H"}"#
    private static let device = """
        {"id":"H","app":"H","status":"H","statusAt":"H","reason":"H","createdAt":"H","waiting":1,"user":"H","appVersion":"H",\
        "locale":"H","timeZone":"H","push":{"platform":"H","environment":"H"},"parameters":{"H":"H"},\
        "channels":[{"channelID":"H","name":"H","restricted":true,"wake":"H"}]}
        """
    private static let summary =
        #"{"id":"H","app":"H","createdAt":"H","status":"H","reason":"H","platform":"H","environment":"H","user":"H"}"#
    private static let users =
        #"{"jwksURL":"H","keys":1,"secrets":1,"algorithms":["H"],"audience":"H","issuer":"H","setAt":"H"}"#
    private static let credential = """
        {"app":"H","environment":"H","kind":"H","bundleID":"H","keyID":"H","teamID":"H","expiresAt":"H","setAt":"H","fault":"H"}
        """
    private static let server = #"{"device":"H","host":"H","port":1,"priority":1}"#
    private static let update = """
        {"id":"H","kind":"H","status":"H","mode":"H","publishedAt":"H","expiresAt":"H","audience":"H","payload":{"H":"H"}}
        """
    private static let subscription = """
        {"id":"H","items":["H"],"fields":["H"],"mode":"H","trigger":"H","format":{"title":"H"},"policy":"H","coolDown":1,"key":"H",\
        "tags":["H"],"expiresAt":"H","status":"H","statusAt":"H","createdAt":"H","firedAt":"H","hash":"H"}
        """

    /// One or more for each command that speaks to the API.
    static let cases: [Case] = [
        Case(arguments: ["apps", "create", "a.b"], answer: #"{"id":"H","createdAt":"H"}"#),
        Case(arguments: ["apps", "list"], answer: #"{"apps":[{"id":"H","createdAt":"H"}]}"#),
        Case(arguments: ["apps", "delete", "a.b"], answer: "", showsTexts: false),
        Case(arguments: ["apps", "credentials", "list", "a.b"], answer: "{\"credentials\":[\(credential)]}"),
        Case(arguments: ["apps", "credentials", "remove", "a.b"], answer: "", showsTexts: false),
        Case(arguments: ["apps", "alert", "set", "a.b", "--title", "t"], answer: #"{"title":"H"}"#, showsTexts: false),
        Case(arguments: ["apps", "alert", "show", "a.b"], answer: #"{"title":"H","body":"H","sound":"H"}"#),
        Case(arguments: ["apps", "alert", "remove", "a.b"], answer: "", showsTexts: false),
        Case(arguments: ["apps", "users", "set", "a.b", "--jwks-url", "https://a.b/"], answer: users),
        Case(arguments: ["apps", "users", "show", "a.b"], answer: users),
        Case(arguments: ["apps", "users", "remove", "a.b"], answer: "", showsTexts: false),
        Case(
            arguments: ["apps", "approval-hook", "set", "a.b", "https://a.b/"],
            answer: #"{"url":"H","secret":"H","setAt":"H"}"#),
        Case(arguments: ["apps", "approval-hook", "show", "a.b"], answer: #"{"url":"H","setAt":"H"}"#),
        Case(arguments: ["apps", "approval-hook", "remove", "a.b"], answer: "", showsTexts: false),
        Case(
            arguments: ["apps", "parameters", "set", "a.b", "x=int"], answer: #"{"parameters":{"H":"H"}}"#,
            showsTexts: false),
        Case(arguments: ["apps", "parameters", "show", "a.b"], answer: #"{"parameters":{"H":"H"}}"#),
        Case(
            arguments: ["apps", "audit", "a.b"],
            answer: #"{"entries":[{"at":"H","key":"H","action":"H","update":"H","count":2}]}"#),
        Case(arguments: ["apps", "realm", "set", "a.b", "r"], answer: #"{"realm":"H"}"#),
        Case(arguments: ["apps", "realm", "show", "a.b"], answer: #"{"realm":"H"}"#),
        Case(arguments: ["apps", "realm", "remove", "a.b"], answer: "", showsTexts: false),
        Case(arguments: ["apps", "servers", "add", "a.b", String(repeating: "a", count: 32)], answer: server),
        Case(arguments: ["apps", "servers", "list", "a.b"], answer: "{\"servers\":[\(server)]}"),
        Case(
            arguments: ["apps", "servers", "remove", "a.b", String(repeating: "a", count: 32)], answer: "", showsTexts: false
        ),
        Case(arguments: ["keys", "create", "--role", "admin"], answer: key),
        Case(arguments: ["keys", "list"], answer: "{\"keys\":[\(key)]}"),
        Case(arguments: ["keys", "rotate", "k"], answer: key),
        Case(arguments: ["keys", "revoke", "k"], answer: "", showsTexts: false),
        Case(arguments: ["devices", "list", "a.b"], answer: "{\"devices\":[\(summary)],\"next\":\"H\"}"),
        Case(arguments: ["devices", "show", "d"], answer: device),
        Case(arguments: ["devices", "suspend", "d"], answer: device),
        Case(arguments: ["devices", "resume", "d"], answer: device),
        Case(arguments: ["devices", "delete", "d"], answer: "", showsTexts: false),
        Case(
            arguments: ["items", "publish", "i", "x=1"], answer: #"{"version":1,"repeated":false,"H":"H"}"#,
            showsTexts: false),
        Case(
            arguments: ["items", "publish"],
            answer: #"{"accepted":1,"repeated":0,"refused":1,"refusals":[{"line":1,"code":"H","detail":"H"}]}"#,
            input: "{}\n"),
        Case(arguments: ["items", "get", "i"], answer: #"{"item":"H","version":1,"fields":{"H":"H"}}"#),
        Case(
            arguments: ["items", "list"],
            answer: #"{"items":[{"item":"H","version":1,"updatedAt":"H","subscriptions":1}]}"#),
        Case(arguments: ["items", "delete", "i"], answer: "", showsTexts: false),
        Case(
            arguments: ["items", "rules", "set", "a.b", "-"], answer: #"{"items":[],"H":"H"}"#, input: "{}",
            showsTexts: false),
        Case(arguments: ["items", "rules", "show", "a.b"], answer: #"{"items":[{"pattern":"H"}]}"#),
        Case(arguments: ["subscriptions", "list", "d"], answer: "{\"subscriptions\":[\(subscription)]}"),
        Case(
            arguments: ["subscriptions", "explain", "d", "s"],
            answer: """
                {"subscription":"H","items":[{"item":"H","verdict":"H","version":1,"error":"H",\
                "alternatives":[[{"text":"H","holds":true,"isIndexed":true,"value":"H"}]]}]}
                """),
        Case(arguments: ["updates", "publish", "status", "{}"], answer: #"{"id":"H","expiresAt":"H"}"#),
        Case(arguments: ["updates", "list"], answer: "{\"updates\":[\(update)]}"),
        Case(arguments: ["updates", "show", "u"], answer: update),
        Case(
            arguments: ["updates", "show", "u", "--devices"],
            answer: """
                {"devices":[{"device":"H","user":"H","profile":"H","state":"H","reason":"H","changedAt":"H","dueAt":"H"}]}
                """),
        Case(arguments: ["updates", "withdraw", "u"], answer: "", showsTexts: false),
        Case(arguments: ["updates", "requeue", "u"], answer: #"{"count":1,"H":"H"}"#, showsTexts: false),
        Case(arguments: ["updates", "resume", "u"], answer: update, showsTexts: false),
        Case(
            arguments: ["updates", "explain", "u"],
            answer: #"{"count":1,"exact":true,"looked":1,"errors":[{"error":"H","count":1}]}"#),
        Case(
            arguments: ["updates", "explain", "u", "--device", "d"], answer: #"{"matches":false,"error":"H","says":["H"]}"#),
    ]

    /// Commands that print no answers of the API, or use the client library: their faults are those of `services list`.
    private static let others: Set = [
        "serve", "health", "demo", "backup", "restore", "listen", "send", "apns send", "apns channels create",
        "apns channels list", "apns channels read", "apns channels delete", "apns check", "apns simulate",
        "apps credentials set", "items watch", "attachments put", "attachments get", "attachments resume",
        "services check", "services list", "services call", "services results", "services provide",
        "services identities", "services accept",
        "expression check", "expression eval", "help",
    ]

    private func check(_ lines: [String], _ what: String) {
        let found = Set(lines.joined().unicodeScalars.filter(Self.isUnsafe).map { String($0.value, radix: 16) })
        #expect(found.isEmpty, "\(what) printed \(found.sorted())")
    }

    @Test(arguments: cases)
    func `no text of an answer steers the terminal`(one: Case) async throws {
        let server = try HostileServer { _, _ in
            .init(status: one.body.isEmpty ? 204 : 200, headers: one.headers, body: one.body)
        }
        for json in [false, true] {
            let arguments = one.arguments + ["--server", server.address, "--key", "k"] + (json ? ["--json"] : [])
            let (status, lines) = try await run(arguments, input: one.input)
            check(lines, "\(arguments)")
            // Refused lines have a code of their own.
            #expect(status == 0 || one.answer.contains("refusals"), "\(arguments) ended with \(status): \(lines)")
            let seen = lines.joined()
            if one.showsTexts {
                for escape in [#"\u001b"#, #"\u009b"#, #"\u202e"#, #"\u2066"#, #"\u2028"#] {
                    #expect(seen.contains(escape), "\(arguments) hides \(escape): \(lines)")
                }
            }
            if json, status == 0 {
                for line in lines { #expect(JSONValue(parsing: Array(line.utf8)) != nil, "\(arguments): \(line)") }
            }
        }
        withExtendedLifetime(server) {}
    }

    @Test(arguments: cases)
    func `no text of a refusal steers the terminal`(one: Case) async throws {
        let problem = #"{"type":"H","title":"H","status":400,"detail":"H","code":"field_invalid"}"#.replacing(
            #""H""#, with: Self.text)
        for body in [problem, "\u{1B}[2J\u{202E}\n{", #"{"H":1}"#.replacing(#""H""#, with: Self.text)] {
            for status in [200, 400] where status == 400 || body != problem {
                let server = try HostileServer { _, _ in .init(status: status, body: body) }
                let arguments = one.arguments + ["--server", server.address, "--key", "k"]
                let (end, lines) = try await run(arguments, input: one.input)
                check(lines, "\(arguments)")
                if body == problem {
                    #expect(end == 65 && lines.count == 1, "\(arguments) ended with \(end): \(lines)")
                }
                withExtendedLifetime(server) {}
            }
        }
    }

    @Test func `answers of a push service or a message's server cannot control the terminal`() async throws {
        let server = try HostileServer { _, _ in
            .init(
                status: 201,
                headers: [("Location", "/m/\u{9B}A\u{202E}"), ("TTL", "\u{1B}[2J"), ("Carillon-Outcome", "\u{2066}x")])
        }
        for json in [[], ["--json"]] {
            let (_, lines) = try await run(["send", server.address + "/push/t", "Hello"] + json)
            check(lines, "send")
        }
        withExtendedLifetime(server) {}
    }

    @Test func `the answer to a health check does not steer the terminal`() async throws {
        let problem = #"{"type":"H","title":"H","status":503,"detail":"H","code":"overloaded"}"#.replacing(
            #""H""#, with: Self.text)
        for body in [problem, "\u{1B}[2J\u{202E}\n{"] {
            let server = try HostileServer { _, _ in .init(status: 503, body: body) }
            let (status, lines) = try await run(["health", "--server", server.address])
            check(lines, "health")
            #expect(status == 1 && lines.count == 1, "\(lines)")
            withExtendedLifetime(server) {}
        }
    }

    @Test func `each command is one of the tested ones`() async throws {
        let (status, lines) = try await run(["--experimental-dump-help"])
        #expect(status == 0)
        let help = try #require(JSONValue(parsing: Array(lines.joined(separator: "\n").utf8))?["command"])
        var leaves: [[String]] = []
        func collect(_ command: JSONValue, _ path: [String]) {
            guard case .array(let commands)? = command["subcommands"] else { return leaves.append(path) }
            for command in commands {
                if case .string(let name)? = command["commandName"] { collect(command, path + [name]) }
            }
        }
        collect(help, [])
        #expect(leaves.count > 40)
        for leaf in leaves where leaf.last != "help" {
            let isTried = Self.cases.contains { $0.arguments.starts(with: leaf) }
            #expect(isTried || Self.others.contains(leaf.joined(separator: " ")), "\(leaf) is not tried")
        }
    }

    @Test func `a fault of the command line does not steer the terminal`() async throws {
        for arguments in [["devices", "\u{1B}[2J\u{202E}"], ["keys", "create", "--role", "x", "--\u{9B}"], ["\u{2066}"]] {
            let (status, lines) = try await run(arguments)
            #expect(status == 64)
            check(lines, "\(arguments)")
        }
    }
}
