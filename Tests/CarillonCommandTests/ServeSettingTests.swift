import ArgumentParser
import CarillonCore
import CarillonServer
import Foundation
import Testing

@testable import CarillonCommand

/// The table of settings, and what follows from it.
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

    @Test func `each option of the command line is passed on`() throws {
        let flags = ["dev", "anonymous-devices", "allow-private-addresses"]
        let options = ServeSetting.all.filter { $0.isOption }.map(\.name)
        let arguments = options.flatMap { flags.contains($0) ? ["--\($0)"] : ["--\($0)", "x-\($0)"] }
        let command = try ServeCommand.parse(arguments)
        for name in options { #expect(command.flags[name] == (flags.contains(name) ? "true" : "x-\(name)")) }
        #expect(command.flags.count == options.count)
    }

    @Test func `the time for an answer and the time for the answer of a back end are two settings`() throws {
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
        ("log", "loud", "trace, debug"), ("listen", "8080", "HOST:PORT"), ("apns-proxy", "proxy", "HOST:PORT"),
        ("metrics-listen", "0", "HOST:PORT"), ("allowed-origins", "app.example.com", "origins such as"),
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
        #expect(settings.allowances.channelMessages?.perSecond == 7 && settings.allowances.channelMessages?.burst == 70)
        #expect(settings.allowances.deviceMessages?.perSecond == 7 && settings.allowances.deviceMessages?.burst == 3)
        #expect(settings.allowances.appMessages == nil)
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
