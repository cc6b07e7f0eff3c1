import ArgumentParser
import NIOHTTP1

extension UpdatesCommand {
    struct Resume: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Resume paused updates. The server delivers them to their audiences from now on.",
            discussion: "`carillon restore --hold-updates` pauses all live updates.")
        @Argument(help: "The updates.") var updates: [String] = []
        @Flag(help: "Resume all paused updates of the app.") var all = false
        @OptionGroup var options: PublisherOptions

        func validate() throws {
            guard all != !updates.isEmpty else {
                throw ValidationError("Name the updates to resume, or use --all.")
            }
        }

        func run() async throws {
            try await reportingFaults {
                var names = updates
                if all { try await List.each(.max, "paused", options) { names.append($0.text("id")) } }
                let client = try options.client
                // The oldest update is first, in the order of publication.
                for name in all ? names.reversed() : names {
                    _ = try client.accepted(
                        try await client.send(.POST, options.path("/v1/updates/\(APIClient.inQuery(name))/resume")),
                        as: { $0.has(["id"]) })
                    options.printer.print(["event": "resumed", "update": .text(name)], otherwise: "resumed  \(name)")
                }
            }
        }
    }
}
