import ArgumentParser
import CarillonWire
import NIOHTTP1

/// `carillon items list`: lists the items of an app.
struct ItemListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the items of an app, in the order of their names.")
    @Option(help: "Only items whose names begin with this text.") var prefix: String?
    @Option(help: "Only items after this item.") var after: String?
    @Option(help: "The maximum number of items. Default: all.") var limit: Int?
    @OptionGroup var options: PublisherOptions

    func validate() throws {
        guard limit ?? 1 > 0 else { throw ValidationError("--limit must be at least 1.") }
    }

    func run() async throws {
        try await reportingFaults {
            let client = try options.client
            var (place, left) = (after, limit ?? .max)
            repeat {
                let page = try await client.call(.GET, path(after: place, limit: min(left, 1000)), as: ItemList.self)
                for item in page.items { show(item) }
                left -= page.items.count
                place = page.next
            } while place != nil && left > 0
            guard let next = place else { return }
            options.printer.print(["event": "more", "after": .text(next)], otherwise: "more: --after \(next)")
        }
    }

    private func path(after place: String?, limit: Int) -> String {
        var path = "/v1/items?limit=\(limit)"
        for (name, value) in [("prefix", prefix), ("after", place), ("app", options.app)] {
            if let value { path += "&\(name)=\(APIClient.inQuery(value))" }
        }
        return path
    }

    private func show(_ item: ItemList.Item) {
        options.printer.print(
            [
                "item": .text(item.item), "version": .number(item.version), "updatedAt": .text(item.updatedAt),
                "subscriptions": .number(Int64(item.subscriptions)),
            ],
            otherwise: "\(item.item)  after \(item.version) updates  \(item.updatedAt)  \(item.subscriptions) subscriptions")
    }
}
