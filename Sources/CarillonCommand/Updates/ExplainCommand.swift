import ArgumentParser
import CarillonBasics
import CarillonServer
import CarillonWire
import NIOHTTP1

extension UpdatesCommand {
    struct Explain: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract:
                "Show how many devices an audience matches, or whether it matches one device, and why it does not match others.",
            discussion: """
                An audience does not match a device that does not report a parameter of the audience: this is the usual \
                error. Nothing is sent.
                """)

        @Argument(help: "The update with the audience; or use --audience.") var update: String?
        @Option(help: "A condition over parameters.") var audience: String?
        @Option(help: "Only this device.") var device: String?
        @OptionGroup var options: PublisherOptions

        func validate() throws {
            guard (update == nil) != (audience == nil) else {
                throw ValidationError("Name an update, or use --audience.")
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
                let answer = try client.accepted(
                    try await client.send(.POST, options.path("/v1/updates/explain"), body: body),
                    as: { $0.has([device == nil ? "count" : "matches"]) })
                let explanation = try client.value(of: answer, as: JSONValue.self)
                device == nil ? showAll(explanation) : showOne(explanation)
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
                    "matches \(isExact ? "" : "about ")\(answer.integer("count")) devices; \(answer.integer("looked")) were evaluated"
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
                    matches ? "matches this device" : "does not match this device", error,
                    says.isEmpty ? "" : "reports: " + says.joined(separator: ", "),
                ].filter { !$0.isEmpty }.joined(separator: "  "))
        }
    }
}
