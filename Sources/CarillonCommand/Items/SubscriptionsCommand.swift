import ArgumentParser
import CarillonBasics
import CarillonServer
import CarillonWire
import Foundation
import NIOHTTP1

struct SubscriptionsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "subscriptions", abstract: "Show the item subscriptions of devices, and why they fire or do not.",
        subcommands: [List.self, Explain.self])

    struct Options: ParsableArguments {
        @Option(
            help: "The server's address, such as http://127.0.0.1:8080; or CARILLON_SERVER in the environment.")
        var server: String?
        @Option(help: "An admin key; or CARILLON_KEY in the environment.") var key: String?
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
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List the subscriptions of a device.")
        @Argument(help: "The device.") var device: String
        @Option(help: "Only subscriptions with this status: subscribed or triggered.") var status: String?
        @OptionGroup var options: Options

        func run() async throws {
            try await reportingFaults {
                let client = try options.client
                var after: String?
                repeat {
                    let query = ["limit=500", status.map { "status=\(APIClient.inQuery($0))" }, after.map { "after=\($0)" }]
                    let path = "/v1/devices/\(device)/subscriptions?" + query.compactMap(\.self).joined(separator: "&")
                    let page = try await client.call(.GET, path, as: SubscriptionList.self)
                    for subscription in page.subscriptions { try show(subscription) }
                    after = page.next
                } while after != nil
            }
        }

        private func show(_ subscription: SubscriptionBody) throws {
            if options.json {
                let encoder = JSONEncoder()
                encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
                return Printer.printJSON(Array(try encoder.encode(subscription)))
            }
            options.printer.print(
                [:],
                words: [
                    subscription.id, subscription.status, "since \(subscription.statusAt)", subscription.policy,
                    subscription.key.map { "key \($0)" }, subscription.items.joined(separator: ","),
                    subscription.trigger.map { "when \($0)" } ?? "each update",
                ])
        }
    }

    struct Explain: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Explain why a subscription fires with the present values of its items, or does not.")
        @Argument(help: "The device.") var device: String
        @Argument(help: "The subscription.") var subscription: String
        @OptionGroup var options: Options

        func run() async throws {
            try await reportingFaults {
                let path = "/v1/devices/\(device)/subscriptions/\(subscription)/explanation"
                let client = try options.client
                let answer = try client.accepted(try await client.send(.GET, path), as: { $0.has(["items"]) })
                if options.json { return Printer.printJSON(Array(answer.body)) }
                for item in try client.value(of: answer, as: ExplanationList.self).items {
                    options.printer.print([:], lines: Self.lines(of: item))
                }
            }
        }

        private static func lines(of item: ExplanationList.Item) -> [String] {
            var lines = ["\(item.item)  \(item.verdict)  after \(item.version) updates"]
            if let error = item.error { lines.append("  \(error)") }
            for (number, parts) in item.alternatives.enumerated() {
                if number > 0 { lines.append("  or") }
                for part in parts {
                    let value = part.value.map { "  (it is \($0))" } ?? ""
                    lines.append("  \(part.holds ? "yes" : "no ")  \(part.text)\(value)")
                }
            }
            return lines
        }
    }
}
