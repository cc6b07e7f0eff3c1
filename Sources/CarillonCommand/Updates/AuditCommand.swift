import ArgumentParser
import CarillonBasics
import CarillonCore
import CarillonServer
import CarillonWire
import NIOHTTP1

/// `carillon apps audit`: lists the keys that published, withdrew and requeued audience updates.
struct AuditCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "audit",
        abstract: "Show which keys published, withdrew and requeued the app's updates, the latest first.",
        discussion:
            "One line for each action, with its API key. Entries are stored for 400 days, up to 100,000 for each app.")

    @Argument(help: "The app.") var app: String
    @Option(help: "The maximum number of entries.") var limit = 100
    @OptionGroup var options: OperatorOptions

    func validate() throws {
        guard limit > 0 else { throw ValidationError("--limit must be at least 1.") }
    }

    func run() async throws {
        try await options.perform { domain in
            let serial = try await domain.serial(ofApp: app)
            for entry in try await domain.updates.audit(of: serial, before: nil, limit: limit) { show(entry.json) }
        } onServer: { client in
            let path = { (size: Int, place: String?) in
                "/v1/apps/\(app)/audit?limit=\(size)" + (place.map { "&before=\($0)" } ?? "")
            }
            try await client.list("entries", limit: limit, at: path, show)
        }
    }

    private func show(_ entry: JSONValue) {
        var values: [String: OutputValue] = [
            "at": .text(entry.text("at")), "key": .text(entry.text("key")), "action": .text(entry.text("action")),
            "update": .text(entry.text("update")),
        ]
        let hasCount = entry["count"] != nil
        if hasCount { values["count"] = .number(entry.integer("count")) }
        options.printer.print(
            values,
            otherwise: [
                entry.text("at"), entry.text("action"), entry.text("update"), "by key \(entry.text("key"))",
                hasCount ? "for \(entry.integer("count")) devices" : "",
            ].filter { !$0.isEmpty }.joined(separator: "  "))
    }
}
