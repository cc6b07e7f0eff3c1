import ArgumentParser
import CarillonBasics
import CarillonServer
import CarillonWire
import Foundation
import NIOHTTP1

struct UpdatesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "updates", abstract: "Publish updates for an audience, and show their results.",
        discussion: """
            An update is delivered to every device of the app that its audience matches, now or during the update's \
            lifetime. An audience is a condition over the parameters that devices report, such as region == 'north' && \
            level >= 2; `carillon apps parameters` declares the parameters. These commands are for the app's backend, with \
            a sender key.
            """,
        subcommands: [Publish.self, List.self, Show.self, Withdraw.self, Requeue.self, Resume.self, Explain.self])

    struct Publish: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Publish an update.",
            discussion: """
                The payload is JSON, in the form of the kind: {"action":"refresh","object":"pump-7"} for content, nothing for \
                definitions, {"status":"maintenance"} for status, {"style":"important","title":"Lunch"} for popup, and any \
                object for a kind of the app, whose name has a dot in it.
                """)

        @Argument(help: "The kind: content, definitions, status, popup, or a kind of the app.") var kind: String
        @Argument(help: "The payload, as JSON; - is standard input.") var payload: String?
        @Option(help: "A condition over parameters. Default: the update is for every device.") var audience: String?
        @Flag(help: "Deliver the update each time that a device enters the audience, and not only once.") var standing =
            false
        @Option(help: "The lifetime in seconds. Default: 30 days.") var ttl: Int?
        @Option(help: "A key for the order: a device receives updates with the same key one after the other.") var orderKey:
            String?
        @Flag(help: "Wake matching devices that are not connected.") var wake = false
        @Option(help: "The update that this update replaces.") var supersedes: String?
        @Option(help: "A key for retries: a second request with the same key publishes no second update.")
        var idempotencyKey: String?
        @Flag(help: "Only show how many devices the update would match.") var validate = false
        @OptionGroup var options: PublisherOptions

        func run() async throws {
            try await reportingFaults(interrupted: "interrupted; the update may have been published") {
                let client = try options.client
                let query = validate ? options.query + (options.query.isEmpty ? "?" : "&") + "validate=true" : options.query
                let answer = try client.accepted(
                    try await client.send(
                        .POST, "/v1/updates" + query,
                        headers: idempotencyKey.map { [("idempotency-key", $0)] } ?? [], body: try body),
                    as: { $0.has([validate ? "count" : "id"]) })
                let made = try client.value(of: answer, as: JSONValue.self)
                if validate {
                    let (count, isExact) = (made.integer("count"), made["exact"] == .bool(true))
                    return options.printer.print(
                        ["event": "validated", "count": .number(count), "exact": .flag(isExact)],
                        otherwise: "would match \(isExact ? "" : "about ")\(count) devices")
                }
                options.printer.print(
                    [
                        "event": "published", "update": .text(made.text("id")), "repeated": .flag(answer.status == 200),
                        "expiresAt": .text(made.text("expiresAt")),
                    ],
                    otherwise:
                        "\(answer.status == 200 ? "repeated" : "published")  \(made.text("id"))  until \(made.text("expiresAt"))"
                )
            }
        }

        private var body: [UInt8] {
            get throws {
                var json: JSONValue?
                if let payload {
                    let text =
                        payload == "-" ? Array(try FileHandle.standardInput.readToEnd() ?? Data()) : Array(payload.utf8)
                    json = JSONValue(parsing: text)
                    guard json != nil else {
                        throw CommandFault.numberOutOfRange(in: text, of: "the payload")
                            ?? CommandFault(.validationFailure, "the payload is not JSON")
                    }
                }
                return JSONWriter.object { writer in
                    writer.member("kind", kind)
                    writer.member("payload", text: json?.bytes)
                    writer.member("audience", audience)
                    writer.member("mode", standing ? "standing" : "once")
                    writer.member("ttl", ttl)
                    writer.member("orderKey", orderKey)
                    writer.member("wake", wake ? "match" : "none")
                    writer.member("supersedes", supersedes)
                }
            }
        }
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List the app's updates, the latest first.")
        @Option(help: "The maximum number of updates.") var limit = 100
        @Option(help: "The status: all, live, or paused.") var status = "all"
        @OptionGroup var options: PublisherOptions

        func run() async throws {
            try await reportingFaults {
                try await List.each(limit, status, options) { show($0) }
            }
        }

        /// Reads the list page by page.
        static func each(
            _ limit: Int, _ status: String, _ options: PublisherOptions, _ use: (JSONValue) -> Void
        ) async throws {
            let path = { (size: Int, place: String?) in
                options.path("/v1/updates", [("limit", "\(size)"), ("status", status), ("before", place)])
            }
            try await options.client.list("updates", limit: limit, at: path, use)
        }

        private func show(_ update: JSONValue) {
            let names = ["id", "kind", "status", "mode", "publishedAt", "expiresAt", "audience"]
            let isPaused = update["paused"] == .bool(true)
            var values = Dictionary(names.map { ($0, OutputValue.text(update.text($0))) }) { $1 }
            if isPaused { values["paused"] = .flag(true) }
            options.printer.print(
                values,
                otherwise: [
                    update.text("id"), isPaused ? "paused" : update.text("status"), update.text("kind"),
                    update.text("publishedAt"),
                    update.text("audience"),
                ].joined(separator: "  "))
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show an update, with how many devices are in each state; or its devices.")
        @Argument(help: "The update.") var update: String
        @Flag(help: "Show the devices of the update, one per line.") var devices = false
        @Option(help: "Only devices in this state, such as parked.") var state: String?
        @OptionGroup var options: PublisherOptions

        func run() async throws {
            try await reportingFaults {
                let client = try options.client
                let address = "/v1/updates/\(APIClient.inQuery(update))"
                guard devices || state != nil else {
                    let answer = try client.accepted(
                        try await client.send(.GET, options.path(address)), as: { $0.has(["id"]) })
                    return Printer.printJSON(Array(answer.body))
                }
                let path = { (size: Int, place: String?) in
                    options.path(address + "/devices", [("limit", "\(size)"), ("state", state), ("after", place)])
                }
                try await client.list("devices", at: path, show)
            }
        }

        private func show(_ device: JSONValue) {
            var values: [String: OutputValue] = [
                "entry": .number(device.integer("entry")), "attempt": .number(device.integer("attempt")),
                "failures": .number(device.integer("failures")),
            ]
            for name in ["device", "user", "profile", "state", "reason", "changedAt", "dueAt"] where device[name] != nil {
                values[name] = .text(device.text(name))
            }
            options.printer.print(
                values,
                otherwise: [
                    device.text("device"), device.text("state"), "attempt \(device.integer("attempt"))",
                    device.text("changedAt"), device.text("reason"),
                ].joined(separator: "  "))
        }
    }

    struct Withdraw: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Withdraw an update: the server no longer delivers it, and devices that did not process it drop it.")
        @Argument(help: "The update.") var update: String
        @OptionGroup var options: PublisherOptions

        func run() async throws {
            try await reportingFaults {
                let client = try options.client
                _ = try client.accepted(
                    try await client.send(.DELETE, options.path("/v1/updates/\(APIClient.inQuery(update))")))
                options.printer.print(["event": "withdrawn", "update": .text(update)], otherwise: "withdrawn  \(update)")
            }
        }
    }

    struct Requeue: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Deliver an update again to the devices where it is parked after repeated or permanent failure.")
        @Argument(help: "The update.") var update: String
        @Option(help: "Only this device.") var device: String?
        @OptionGroup var options: PublisherOptions

        func run() async throws {
            try await reportingFaults {
                let client = try options.client
                let body = JSONWriter.object { $0.member("device", device) }
                let answer = try client.accepted(
                    try await client.send(
                        .POST, options.path("/v1/updates/\(APIClient.inQuery(update))/requeue"), body: body),
                    as: { $0.has(["count"]) })
                let count = try client.value(of: answer, as: JSONValue.self).integer("count")
                options.printer.print(
                    ["event": "requeued", "update": .text(update), "count": .number(count)],
                    otherwise: "requeued  \(update)  for \(count) devices")
            }
        }
    }
}
