import ArgumentParser
import NIOHTTP1

/// `carillon items delete`: deletes an item of an app.
struct ItemDeleteCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete", abstract: "Delete an item with its values.",
        discussion: "Subscriptions on the item stay, and wait until it is published again. Its version starts again at 1.")
    @Argument(help: "The item.") var item: String
    @OptionGroup var options: PublisherOptions

    func run() async throws {
        try await reportingFaults {
            let client = try options.client
            let path = "/v1/items/\(APIClient.inQuery(item))" + options.query
            _ = try client.accepted(try await client.send(.DELETE, path))
            options.printer.print(["event": "deleted", "item": .text(item)], otherwise: "deleted \(item)")
        }
    }
}
