import ArgumentParser
import CarillonBasics
import CarillonCore
import CarillonServer
import CarillonWire
import Foundation
import NIOHTTP1

struct ItemsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "items", abstract: "Publish items to which devices subscribe, and show them.",
        discussion: """
            `carillon items rules set` opens items to an app's devices; `publish` and `get` are for its backend, with a \
            sender key.
            """,
        subcommands: [
            Publish.self, Get.self, Watch.self, ItemListCommand.self, ItemDeleteCommand.self, ItemRulesCommand.self,
        ])

    struct Publish: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Publish an item update, or many from standard input.",
            discussion: """
                A value is JSON if it is valid JSON, and a text otherwise: price=10.50, name=ACME, open=true, note=null.

                Without an item, standard input must have one line for each update: {"item": "stock.ACME", "fields": \
                {"price": 10.5}}. Each refused line is reported with its number; the exit code is 65 then.
                """)

        @Argument(help: "The item.") var item: String?
        @Argument(help: "The fields, such as price=10.5.") var fields: [String] = []
        @Option(help: "The source of the update; with --sequence, the server ignores an update that it already has.")
        var source: String?
        @Option(help: "The number of the update in the order of its source.") var sequence: Int?
        @OptionGroup var options: PublisherOptions

        func validate() throws {
            guard (source == nil) == (sequence == nil) else {
                throw ValidationError("Use --source and --sequence together.")
            }
            for field in fields {
                guard let sign = field.firstIndex(of: "=") else { throw ValidationError("\"\(field)\" is not name=value.") }
                // A number out of range is an error, and is not sent as text.
                if let number = NumberOutOfRange(in: Array(field[field.index(after: sign)...].utf8)) {
                    throw ValidationError("The field \"\(field[..<sign])\" is not valid: \(number.clauseWithNumber).")
                }
            }
            guard item == nil || !fields.isEmpty else { throw ValidationError("Name the fields, such as price=10.5.") }
        }

        func run() async throws {
            try await reportingFaults(interrupted: "interrupted; the server may have accepted the sent updates") {
                guard let item else { return try await publishLines() }
                let client = try options.client
                let path = "/v1/items/\(APIClient.inQuery(item))/updates" + options.query
                let answer = try client.accepted(
                    try await client.send(.POST, path, body: body), as: { $0.has(["version"]) })
                let taken = try client.value(of: answer, as: Receipt.self)
                options.printer.print(
                    [
                        "event": "taken", "item": .text(item), "version": .number(taken.version),
                        "repeated": .flag(taken.repeated),
                    ], otherwise: taken.repeated ? "repeated" : "accepted  update \(taken.version) of \(item)")
            }
        }

        private struct Receipt: Decodable {
            var version: Int64
            var repeated: Bool
        }

        /// The body. Numbers keep the digits that the user wrote.
        private var body: [UInt8] {
            JSONWriter.object { json in
                json.member("fields") { json in
                    for field in fields {
                        let parts = field.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                        let text = Array(parts[1].utf8)
                        json.key(untrusted: String(parts[0]))
                        if JSONValue(parsing: text) != nil { json.text(text) } else { json.string(String(parts[1])) }
                    }
                }
                json.member("source", source)
                json.member("sequence", sequence)
            }
        }

        // MARK: Lines

        private static let bytesAtOnce = 1 << 20

        private func publishLines() async throws {
            let client = try options.client
            var (line, refused) = (0, 0)
            var rest: [UInt8] = []
            while true {
                let some = try FileHandle.standardInput.read(upToCount: Self.bytesAtOnce) ?? Data()
                rest += some
                let end = some.isEmpty ? rest.count : rest.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
                if end > 0 {
                    let lines = Array(rest[..<end])
                    rest.removeFirst(end)
                    do {
                        refused += try await publish(lines, from: line, client)
                    } catch let fault as CommandFault where line > 0 {
                        // Line numbers in the server's message count from the beginning of the sent part.
                        throw CommandFault(
                            fault.code,
                            "\(fault.message); the server answered all lines up to line \(line), and not the part after it")
                    }
                    line += lines.count { $0 == UInt8(ascii: "\n") }
                }
                if some.isEmpty { break }
            }
            if refused > 0 { throw CommandFault(ExitStatus.refused, "\(refused) lines were refused") }
        }

        private func publish(_ lines: [UInt8], from line: Int, _ client: APIClient) async throws -> Int {
            let answer = try client.accepted(
                try await client.send(.POST, "/v1/items/updates" + options.query, body: lines),
                as: { $0.has(["accepted"]) })
            let taken = try client.value(of: answer, as: Taken.self)
            for refusal in taken.refusals {
                options.printer.print(
                    [
                        "event": "refused", "line": .number(Int64(line + refusal.line)), "code": .text(refusal.code),
                        "detail": .text(refusal.detail),
                    ], otherwise: "line \(line + refusal.line)  \(refusal.code)  \(refusal.detail)")
            }
            options.printer.print(
                [
                    "event": "taken", "accepted": .number(Int64(taken.accepted)), "repeated": .number(Int64(taken.repeated)),
                    "refused": .number(Int64(taken.refused)),
                ], otherwise: "accepted \(taken.accepted)  repeated \(taken.repeated)  refused \(taken.refused)")
            return taken.refused
        }

        private struct Taken: Decodable {
            struct Refused: Decodable { var line: Int; var code: String; var detail: String }
            var accepted: Int
            var repeated: Int
            var refused: Int
            var refusals: [Refused]
        }
    }

    struct Get: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Show the values of an item, as JSON.")
        @Argument(help: "The item.") var item: String
        @OptionGroup var options: PublisherOptions

        func run() async throws {
            try await reportingFaults { Printer.printJSON(try await options.read(item).text) }
        }
    }

    struct Watch: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show an item after each update, until Ctrl-C.",
            discussion: "The command reads the item once per second; of several updates in a second it shows the last.")
        @Argument(help: "The item.") var item: String
        @OptionGroup var options: PublisherOptions

        func run() async throws {
            try await reportingFaults {
                var last: Int64 = -1
                while true {
                    do {
                        let read = try await options.read(item)
                        if read.version != last { Printer.printJSON(read.text) }
                        last = read.version
                    } catch let fault as CommandFault where fault.message.hasPrefix(ErrorCode.itemUnknown.rawValue) {
                        // The first update creates the item.
                    }
                    try await Task.sleep(for: .seconds(1))
                }
            }
        }
    }
}

/// The options that select the publisher and the server.
struct PublisherOptions: ParsableArguments {
    @Option(help: "The server's address, such as http://127.0.0.1:8080; or CARILLON_SERVER in the environment.")
    var server: String?
    @Option(help: "A sender key of the app, or an admin key; or CARILLON_KEY in the environment.") var key: String?
    @Option(help: "The app; only needed with an admin key.") var app: String?
    @OptionGroup var authority: AuthorityOption
    @Flag(help: "Print one JSON object per line.") var json = false

    var printer: Printer { Printer(isJSON: json) }

    var client: APIClient {
        get throws {
            APIClient(
                server: try ServerChoice.url(server), key: key ?? Environment["CARILLON_KEY"],
                authority: authority.file)
        }
    }

    var query: String { app.map { "?app=\(APIClient.inQuery($0))" } ?? "" }

    func read(_ item: String) async throws -> (text: [UInt8], version: Int64) {
        let client = try client
        let answer = try client.accepted(
            try await client.send(.GET, "/v1/items/\(APIClient.inQuery(item))" + query), as: { $0.has(["version"]) })
        guard case .integer(let version)? = JSONValue(parsing: Array(answer.body))?["version"] else {
            throw APIClient.foreign(answer)
        }
        return (Array(answer.body), Int64(version))
    }
}

/// `carillon items rules`: the rules for the items of an app.
struct ItemRulesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rules",
        abstract: "Set and show which items are open to an app's devices, and the types of their fields.",
        discussion: """
            The rules are a JSON file: {"items": [{"pattern": "stock.*", "open": true, "mode": "merge", "fields": {"price": \
            "double"}}]}. The first pattern that matches an item applies; * matches any text. An item without a matching pattern is closed.
            """,
        subcommands: [Set.self, Show.self])

    struct Set: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Set the rules.", discussion: "Subscriptions on items that the rules close end.")
        @Argument(help: "The app.") var app: String
        @Argument(help: "The file; - is standard input.") var file: String
        @Flag(name: .customLong("validate"), help: "Only count the subscriptions that the rules would end.")
        var onlyCounts = false
        @OptionGroup var options: OperatorOptions

        func run() async throws {
            let rules = try read()
            try await options.perform { domain in
                let (read, serial) = (try ItemRules(rules), try await domain.serial(ofApp: app))
                if onlyCounts {
                    show(try await domain.subscriptions.countClosed(by: read, of: serial))
                } else {
                    show(try await domain.subscriptions.setRules(read, of: serial))
                }
            } onServer: { client in
                let path = "/v1/apps/\(app)/items" + (onlyCounts ? "?validate=true" : "")
                show(try await client.call(.PUT, path, rules, as: Ended.self, with: ["items"]).ends ?? 0)
            }
        }

        private struct Ended: Decodable {
            /// Nil from a server of an earlier version, which ends no subscriptions.
            var ends: Int?
        }

        private func show(_ ends: Int) {
            let values: [String: OutputValue] = [
                "event": onlyCounts ? "validated" : "set", "app": .text(app), "ends": .number(Int64(ends)),
            ]
            options.printer.print(
                values,
                otherwise: onlyCounts
                    ? "the rules would end \(ends) subscriptions"
                    : "set the rules for items of \(app)" + (ends == 0 ? "" : "; \(ends) subscriptions ended"))
        }

        private func read() throws -> JSONValue {
            let handle = file == "-" ? FileHandle.standardInput : FileHandle(forReadingAtPath: file)
            guard let handle, let bytes = try? handle.readToEnd() ?? Data() else {
                throw CommandFault(ExitStatus.noInput, "\(PathPhrase.subject(file, "the file ")) cannot be read")
            }
            do {
                return try StrictJSON.object(Array(bytes), known: ItemRules.memberNames)
            } catch {
                throw CommandFault(error)
            }
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Show the rules, as JSON.")
        @Argument(help: "The app.") var app: String
        @OptionGroup var options: OperatorOptions

        func run() async throws {
            try await options.perform { domain in
                let serial = try await domain.serial(ofApp: app)
                Printer.printJSON(try await domain.items.rules(of: serial).json.bytes)
            } onServer: { client in
                let rules = try await client.call(.GET, "/v1/apps/\(app)/items", as: JSONValue.self, with: ["items"])
                Printer.printJSON(rules.bytes)
            }
        }
    }
}
