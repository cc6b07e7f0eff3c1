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
            let serial = try await ParametersCommand.serial(of: app, in: domain)
            for entry in try await domain.updates.audit(of: serial, before: nil, limit: limit) { show(entry.json) }
        } onServer: { client in
            var (left, next) = (limit, "")
            repeat {
                let answer = try client.accepted(
                    try await client.send(
                        .GET, "/v1/apps/\(app)/audit?limit=\(min(left, 500))" + (next.isEmpty ? "" : "&before=\(next)")),
                    as: { $0.has(["entries"]) })
                let page = try client.value(of: answer, as: JSONValue.self)
                guard case .array(let entries)? = page["entries"] else { throw APIClient.foreign(answer) }
                entries.forEach(show)
                left -= entries.count
                next = page.text("next")
            } while !next.isEmpty && left > 0
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
