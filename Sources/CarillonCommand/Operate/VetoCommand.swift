import ArgumentParser
import CarillonCore
import CarillonServer
import CarillonWire
import NIOHTTP1

/// `carillon apps veto`: an app's own server that is asked.
struct VetoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "veto",
        abstract: "Set, show and remove the app's own server that may refuse devices and subscriptions.",
        discussion: """
            It is asked before a device registers, before its push token changes, and before a subscription is made or changed. \
            An answer 2xx allows, 403 refuses with a code of its own, and anything else within two seconds, or nothing, refuses \
            for now.
            """,
        subcommands: [Set.self, Show.self, Remove.self])

    struct Set: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Name the server; the secret that signs what it is asked is shown once, here.")
        @Argument(help: "The app.") var app: String
        @Argument(help: ArgumentHelp("Its https address.", valueName: "url")) var url: String
        @OptionGroup var options: OperatorOptions

        func run() async throws {
            try await options.perform { domain in
                let (url, secret, setAt) = try await domain.vetoes.set(url, of: try AppID.checked(app))
                let time = Timestamp3339.text(setAt.milliseconds)
                options.show(VetoBody(url: url, secret: secret, setAt: time), of: app, event: "set")
            } onServer: { client in
                let veto = try await client.call(.PUT, "/v1/apps/\(app)/veto", ["url": url], as: VetoBody.self)
                options.show(veto, of: app, event: "set")
            }
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Show which server is asked, without the secret.")
        @Argument(help: "The app.") var app: String
        @OptionGroup var options: OperatorOptions

        func run() async throws {
            try await options.perform { domain in
                let (url, setAt) = try await domain.vetoes.address(of: try AppID.checked(app))
                let time = Timestamp3339.text(setAt.milliseconds)
                options.show(VetoBody(url: url, secret: nil, setAt: time), of: app, event: nil)
            } onServer: { client in
                options.show(try await client.call(.GET, "/v1/apps/\(app)/veto", as: VetoBody.self), of: app, event: nil)
            }
        }
    }

    struct Remove: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Ask nobody any more: everything is allowed.")
        @Argument(help: "The app.") var app: String
        @OptionGroup var options: OperatorOptions

        func run() async throws {
            try await options.perform { domain in
                try await domain.vetoes.remove(of: try AppID.checked(app))
            } onServer: { client in
                _ = try client.accepted(try await client.send(.DELETE, "/v1/apps/\(app)/veto"))
            }
            options.printer.print(["event": "removed", "app": .text(app)], otherwise: "removed the veto of \(app)")
        }
    }
}

extension OperatorOptions {
    fileprivate func show(_ veto: VetoBody, of app: String, event: String?) {
        var values: [String: OutputValue] = ["app": .text(app), "url": .text(veto.url), "setAt": .text(veto.setAt)]
        values["event"] = event.map(OutputValue.text)
        values["secret"] = veto.secret.map(OutputValue.text)
        let words = [event, app, veto.url, veto.secret, "since \(veto.setAt)"].compactMap(\.self)
        printer.print(values, otherwise: words.joined(separator: "  "))
    }
}
