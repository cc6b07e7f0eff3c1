import ArgumentParser
import CarillonBasics
import CarillonServer
import CarillonWire
import NIOHTTP1

extension UpdatesCommand {
    struct Explain: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Tell for how many devices an audience is, or whether it is for one, and why not for others.",
            discussion: """
                A device that does not say a parameter which the audience speaks of belongs to none: that is the error of most that \
                are left out. Nothing is sent.
                """)

        @Argument(help: "The update whose audience is meant; or give --audience.") var update: String?
        @Option(help: "A condition over parameters.") var audience: String?
        @Option(help: "Only this device.") var device: String?
        @OptionGroup var options: PublisherOptions

        func validate() throws {
            guard (update == nil) != (audience == nil) else {
                throw ValidationError("Name an update, or give an --audience.")
            }
        }

        func run() async throws {
            try await reportingFaults {
                let client = try options.client
                let body = JSONWriter.object { json in
                    json.member("update", update)
                    json.member("audience", audience)
                    json.member("device", device)
                }
                let answer = try Publish.json(
                    try client.accepted(
                        try await client.send(.POST, options.path("/v1/updates/explain"), body: body),
                        as: { $0.has([device == nil ? "count" : "matches"]) }))
                device == nil ? showAll(answer) : showOne(answer)
            }
        }

        private func showAll(_ answer: JSONValue) {
            let isExact = answer["exact"] == .bool(true)
            options.printer.print(
                [
                    "event": "explained", "count": .number(answer.integer("count")), "exact": .flag(isExact),
                    "looked": .number(answer.integer("looked")),
                ],
                otherwise:
                    "it is for \(isExact ? "" : "about ")\(answer.integer("count")) devices; \(answer.integer("looked")) were looked at"
            )
            guard case .array(let errors)? = answer["errors"] else { return }
            for error in errors {
                options.printer.print(
                    ["event": "error", "error": .text(error.text("error")), "count": .number(error.integer("count"))],
                    otherwise: "\(error.integer("count")) devices: \(error.text("error"))")
            }
        }

        private func showOne(_ answer: JSONValue) {
            let matches = answer["matches"] == .bool(true)
            var says: [String] = []
            if case .array(let names)? = answer["says"] {
                says = names.compactMap { if case .string(let name) = $0 { name } else { nil } }
            }
            let error = answer.text("error")
            options.printer.print(
                [
                    "event": "explained", "matches": .flag(matches), "error": .text(error),
                    "says": .text(says.joined(separator: " ")),
                ],
                otherwise: [
                    matches ? "it is for this device" : "it is not for this device", error,
                    says.isEmpty ? "" : "says: " + says.joined(separator: ", "),
                ].filter { !$0.isEmpty }.joined(separator: "  "))
        }
    }
}
