import ArgumentParser
import CarillonBasics
import CarillonServer
import CarillonWire
import NIOHTTP1

/// `carillon apps alert`: the alert that an app shows for an urgent message.
struct AlertCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "alert",
        abstract: "Set, show and remove the text that a device shows for a message while the app does not run.",
        discussion: """
            Messages are not sent to Apple. The device shows this text, or the text that the app's service extension \
            creates from it. Without it, urgent messages wake the app in the background like all others.
            """,
        subcommands: [Set.self, Show.self, Remove.self])

    struct Set: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Set the text.")
        @Argument(help: "The app.") var app: String
        @Option(help: "The title.") var title: String?
        @Option(help: "The title's key in the app's strings, in place of --title.") var titleKey: String?
        @Option(help: "The text below the title.") var body: String?
        @Option(help: "The text's key in the app's strings, in place of --body.") var bodyKey: String?
        @Option(help: "A sound of the app, or default.") var sound: String?
        @Option(help: "The category whose actions the notification offers.") var category: String?
        @Flag(help: "Make the server count the number on the app's icon, until the app resets it.") var countBadge = false
        @OptionGroup var options: OperatorOptions

        private var text: JSONValue {
            let members = [
                ("title", title), ("titleKey", titleKey), ("body", body), ("bodyKey", bodyKey), ("sound", sound),
                ("category", category), ("badge", countBadge ? "auto" : nil),
            ]
            return .object(members.compactMap { name, value in value.map { .init(name: name, value: .string($0)) } })
        }

        func run() async throws {
            try await options.perform { domain in
                try await domain.gateways.setAlert(try AlertText(text), of: try AppID.checked(app))
            } onServer: { client in
                // The server returns the text.
                guard case .object(let members) = text else { return }
                _ = try await client.call(
                    .PUT, "/v1/apps/\(app)/alert", text, as: JSONValue.self, with: members.map(\.name))
            }
            options.printer.print(["event": "set", "app": .text(app)], otherwise: "set the alert of \(app)")
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Show the text.")
        @Argument(help: "The app.") var app: String
        @OptionGroup var options: OperatorOptions

        func run() async throws {
            try await options.perform { domain in
                guard let text = try await domain.gateways.alert(of: try AppID.checked(app)) else {
                    throw Refusal(.notFound, "The app has no alert text; its messages wake the app in the background.")
                }
                show(text.json)
            } onServer: { client in
                let answer = try client.accepted(
                    try await client.send(.GET, "/v1/apps/\(app)/alert"),
                    as: { answer in ["title", "titleKey", "body", "bodyKey"].contains { answer.has([$0]) } })
                show(try client.value(of: answer, as: JSONValue.self))
            }
        }

        private func show(_ text: JSONValue) {
            guard case .object(let members) = text else { return }
            var values: [String: OutputValue] = [:]
            for member in members { if case .string(let text) = member.value { values[member.name] = .text(text) } }
            options.printer.print(values, otherwise: String(decoding: text.bytes, as: UTF8.self))
        }
    }

    struct Remove: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Remove the text: urgent messages then wake the app in the background.")
        @Argument(help: "The app.") var app: String
        @OptionGroup var options: OperatorOptions

        func run() async throws {
            try await options.perform { domain in
                try await domain.gateways.setAlert(nil, of: try AppID.checked(app))
            } onServer: { client in
                _ = try client.accepted(try await client.send(.DELETE, "/v1/apps/\(app)/alert"))
            }
            options.printer.print(["event": "removed", "app": .text(app)], otherwise: "removed the alert of \(app)")
        }
    }
}
