import ArgumentParser
import NIOHTTP1

extension UpdatesCommand {
    struct Resume: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Resume a paused update: devices of its audience are given it from now on.",
            discussion: "`carillon restore --hold-updates` pauses all live updates.")
        @Argument(help: "The update.") var update: String
        @OptionGroup var options: PublisherOptions

        func run() async throws {
            try await reportingFaults {
                let client = try options.client
                _ = try client.accepted(
                    try await client.send(.POST, options.path("/v1/updates/\(APIClient.inQuery(update))/resume")))
                options.printer.print(["event": "resumed", "update": .text(update)], otherwise: "resumed  \(update)")
            }
        }
    }
}
