import ArgumentParser
import CarillonAPNs
import CarillonCore
import Foundation
import Testing

@testable import CarillonCommand

struct APNsOptionsTests {
    private let now = Date(timeIntervalSince1970: 1_800_000_000)

    @Test(arguments: [
        ("https://localhost:2197", "localhost", 2197, true), ("http://127.0.0.1:80", "127.0.0.1", 80, false),
        ("https://push.example.com", "push.example.com", 443, true), ("https://[::1]:8443/", "::1", 8443, true),
    ])
    func `an endpoint is a host with a port`(text: String, host: String, port: Int, isSecure: Bool) throws {
        let address = try ServiceAddress(reading: text)
        #expect(address == ServiceAddress(host: host, port: port, isSecure: isSecure))
        #expect(try ServiceAddress(reading: address.description) == address)
    }

    @Test(arguments: [
        "localhost:2197", "ftp://localhost", "https://", "https://localhost/path", "https://u@localhost", "https://h:0",
        "https://h:99999", "https://h:", "https://a b", "https://h\n", "https:///x", "https://h?q", "https://h#f",
        "https://h/?",
    ])
    func `an invalid endpoint is refused`(text: String) {
        #expect(throws: CallAddress.Fault.self) { try ServiceAddress(reading: text) }
    }

    @Test func `an address of an option that is not valid is refused, and the part is named`() throws {
        for (option, text, part) in [
            ("--endpoint", "https://u:p@h", "user name or a password"), ("--endpoint", "https://h/path", "a path"),
            ("--endpoint", "https://h h", "white space"), ("--endpoint", "https://h:0", "a port from 1 to 65535"),
            ("--proxy", "h", "a port"), ("--proxy", "socks://u:p@h:1", "user name or a password"),
            ("--proxy", "http://:1", "a host"), ("--proxy", "h:65536", "a port from 1 to 65535"),
        ] {
            let error = #expect(throws: (any Error).self) { try APNsEndpointOptions.parse([option, text]) }
            let message = APNsEndpointOptions.message(for: try #require(error))
            #expect(message.contains(option) && message.contains(part), "\(message)")
        }
        for proxy in ["h:1", "http://h:1", "http://h:1/", "socks://h:1", "[::1]:1"] {
            _ = try APNsEndpointOptions.parse(["--proxy", proxy])
        }
    }

    @Test func `a topic gets the suffix of its push type once`() {
        #expect(Topic("com.example.app", for: .alert).text == "com.example.app")
        #expect(Topic("com.example.app", for: .voip).text == "com.example.app.voip")
        #expect(Topic("com.example.app.voip", for: .voip).text == "com.example.app.voip")
        #expect(Topic("com.example.app.voip", for: .voip).bundleID == "com.example.app")
        #expect(Topic("com.apple.mgmt.External.1", for: .mdm).text == "com.apple.mgmt.External.1")
        #expect(Topic(".voip", for: .voip).text == ".voip.voip")
    }

    @Test func `the ID of a key is read from the name that Apple gives the file`() throws {
        func identifier(_ arguments: [String]) throws -> String? {
            try APNsCredentialOptions.parse(arguments).identifier
        }
        #expect(try identifier(["--key", "/a/AuthKey_ABC1234567.p8", "--team-id", "T"]) == "ABC1234567")
        #expect(try identifier(["--key", "AuthKey_ABC1234567.p8", "--key-id", "X", "--team-id", "T"]) == "X")
        #expect(throws: (any Error).self) { try identifier(["--key", "key.p8", "--team-id", "T"]) }
        #expect(throws: (any Error).self) { try identifier(["--key", "key.p8", "--cert", "c"]) }
    }

    @Test func `times have three forms`() {
        #expect(TimeArgument(argument: "+600")?.date(from: now) == now + 600)
        #expect(TimeArgument(argument: "1800000060")?.date(from: now) == now + 60)
        #expect(TimeArgument(argument: "2027-01-15T08:00:00Z")?.date(from: now) == now)
        for text in ["", "soon", "+", "-5", "+x"] { #expect(TimeArgument(argument: text) == nil) }
    }

    @Test func `the options become the payload`() throws {
        let options = try NotificationOptions.parse([
            "--title", "Kettle", "--badge", "0", "--custom", "kettle=7", "who={\"name\":\"Anna\"}", "--expires", "60",
        ])
        let push = try PreparedPush(options, topic: "com.example.app", channel: nil, now: now)
        #expect(
            push.notification.jsonString
                == #"{"aps":{"alert":{"title":"Kettle"},"badge":0},"kettle":7,"who":{"name":"Anna"}}"#)
        #expect(
            try Self.headers(push) == [
                "apns-topic: com.example.app", "apns-push-type: alert", "apns-priority: 10", "apns-expiration: 1800000060",
            ])
    }

    @Test func `a Live Activity's state is passed unchanged`() throws {
        let state = #"{"a":1,"b":1.5,"c":[true,null,"x"],"d":{"e":9007199254740993}}"#
        let options = try NotificationOptions.parse(["--live-activity", "update", "--content-state", state])
        let push = try PreparedPush(options, topic: "com.example.app", channel: "c", now: now)
        #expect(push.notification.jsonString.contains(#""content-state":\#(state)"#))
        #expect(
            try Self.headers(push) == [
                "apns-channel-id: c", "apns-push-type: liveactivity", "apns-priority: 10", "apns-expiration: 0",
            ])
    }

    @Test(arguments: [
        (["--live-activity", "update", "--content-state", "{}", "--badge", "1"], "--badge"),
        (["--live-activity", "update", "--content-state", "{}", "--content-available"], "--content-available"),
        (["--push-type", "controls", "--category", "c"], "--category"),
        (["--push-type", "widgets", "--title", "x"], "--title"),
        (["--push-type", "controls", "--sound", "s"], "--sound"),
        (["--push-type", "fileprovider", "--mutable-content"], "--mutable-content"),
    ])
    func `an option that the push type ignores is refused, unless the checks are off`(
        arguments: [String], option: String
    ) throws {
        let error = #expect(throws: (any Error).self) { try NotificationOptions.parse(arguments) }
        let message = NotificationOptions.message(for: try #require(error))
        #expect(message.contains("ignores \(option)"), "\(message)")
        let options = try NotificationOptions.parse(arguments + ["--without-checks"])
        _ = try Self.headers(try PreparedPush(options, topic: "com.example.app", channel: nil, now: now))
    }

    @Test func `a background push can have a category, but no alert, sound and badge`() throws {
        let category = ["--background", "--category", "c", "--thread-id", "t", "--mutable-content"]
        let options = try NotificationOptions.parse(category)
        _ = try Self.headers(try PreparedPush(options, topic: "com.example.app", channel: nil, now: now))
        for more in [["--title", "x"], ["--subtitle", "x"], ["--body", "x"], ["--sound", "s"], ["--badge", "1"]] {
            let error = #expect(throws: (any Error).self) { try NotificationOptions.parse(category + more) }
            let message = NotificationOptions.message(for: try #require(error))
            #expect(message.contains("A background push shows nothing"), "\(message)")
        }
    }

    @Test func `a push for a File Provider without a container is refused with the names of the options`() throws {
        let arguments = ["--push-type", "fileprovider", "--custom", "a=1"]
        let error = #expect(throws: (any Error).self) { try NotificationOptions.parse(arguments) }
        let message = NotificationOptions.message(for: try #require(error))
        #expect(message.contains("--custom 'container-identifier=") && !message.contains("(container"), "\(message)")
        let container = ["--push-type", "fileprovider", "--custom", "container-identifier=\"c\""]
        for options in [container, arguments + ["--without-checks"]] {
            let push = try PreparedPush(
                try NotificationOptions.parse(options), topic: "com.example.app", channel: nil, now: now)
            _ = try Self.headers(push)
        }
    }

    @Test func `a payload file must follow the rules of its push type, unless the checks are off`() throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "carillon-\(UUID().uuidString).json").path
        try Data(#"{"aps":{"event":"update","timestamp":1}}"#.utf8).write(to: URL(filePath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        func headers(_ more: [String]) throws -> [String] {
            let options = try NotificationOptions.parse(["--payload", path, "--push-type", "liveactivity"] + more)
            return try Self.headers(try PreparedPush(options, topic: "com.example.app", channel: nil, now: now))
        }
        let error = #expect(throws: APNsError.self) { try headers([]) }
        #expect(error?.message.contains("\"aps.content-state\"") == true)
        #expect(try headers(["--without-checks"]).contains("apns-push-type: liveactivity"))
    }

    private static func headers(_ push: PreparedPush) throws -> [String] {
        let client = try APNsClient(.init(credentials: try APNsCredentials.ofNobody()))
        return try client.headers(of: push.notification, toChannel: push.channel).map { "\($0.name): \($0.value)" }
    }

    @Test(arguments: ["name", "=1", "name=Anna", "aps={}", "x="])
    func `a custom key without JSON is refused`(text: String) {
        #expect(throws: CommandFault.self) { try CustomField(text) }
    }

    @Test(arguments: [(31, "ok"), (30, "ok"), (29, "warning"), (0, "warning"), (-1, "wrong")])
    func `a certificate is warned of before it ends`(days: Int, verdict: String) {
        let finding = CredentialCheck.finding(
            from: now - 86_400, until: now + Double(days) * 86_400 + 60, now: now)
        #expect(finding.verdict.rawValue == verdict)
        #expect(CredentialCheck.finding(from: now + 60, until: now + 86_400, now: now).verdict == .wrong)
    }

    @Test func `an answer to a token that does not exist shows whether the credentials are valid`() {
        func verdict(_ status: Int, _ reason: APNsReason?) -> (CheckFinding.Verdict, Int32) {
            let outcome = reason.map { APNsResponse.Outcome.rejected(APNsRejection(status: status, reason: $0)) }
            let finding = AcceptanceCheck.finding(APNsResponse(outcome: outcome ?? .accepted, status: status))
            return (finding.verdict, finding.exitStatus.rawValue)
        }
        #expect(verdict(400, .badDeviceToken).0 == .ok)
        #expect(verdict(200, nil).0 == .ok)
        #expect(verdict(403, .invalidProviderToken) == (.wrong, 77))
        #expect(verdict(503, .serviceUnavailable) == (.wrong, 75))
        #expect(verdict(400, .badTopic) == (.wrong, 65))
    }
}
