import ArgumentParser
import CarillonCore
import CarillonServer
import CarillonWire
import NIOHTTP1

/// `carillon apps approval-hook`: the address that the server calls before it admits devices and item subscriptions of an app.
struct ApprovalHookCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "approval-hook",
        abstract: "Set, show and remove the address of the app's backend that allows or refuses devices and subscriptions.",
        discussion: """
            The server asks the approval hook before a device registers, before its push token changes, and before a subscription \
            is made or changed. The answer 2xx allows the request, 403 refuses it with a code of the app, and any other answer, or \
            no answer within two seconds, refuses it for now.
            """,
        subcommands: [Set.self, Show.self, Remove.self],
        aliases: ["veto"])

    struct Set: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Set the address, and print the secret that signs the calls. The secret is not shown again.")
        @Argument(help: "The app.") var app: String
        @Argument(help: ArgumentHelp("The https address.", valueName: "url")) var url: String
        @OptionGroup var options: OperatorOptions

        func run() async throws {
            try await options.perform { domain in
                let (url, secret, setAt) = try await domain.approvalHooks.set(url, of: try AppID.checked(app))
                let time = Timestamp3339.text(setAt.milliseconds)
                options.show(ApprovalHookBody(url: url, secret: secret, setAt: time), of: app, event: "set")
            } onServer: { client in
                let hook = try await client.call(.PUT, "/v1/apps/\(app)/veto", ["url": url], as: ApprovalHookBody.self)
                options.show(hook, of: app, event: "set")
            }
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Show the address, without the secret.")
        @Argument(help: "The app.") var app: String
        @OptionGroup var options: OperatorOptions

        func run() async throws {
            try await options.perform { domain in
                let (url, setAt) = try await domain.approvalHooks.address(of: try AppID.checked(app))
                let time = Timestamp3339.text(setAt.milliseconds)
                options.show(ApprovalHookBody(url: url, secret: nil, setAt: time), of: app, event: nil)
            } onServer: { client in
                options.show(
                    try await client.call(.GET, "/v1/apps/\(app)/veto", as: ApprovalHookBody.self), of: app, event: nil)
            }
        }
    }

    struct Remove: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Remove the address. The server then allows everything that the keys and rules of the app allow.")
        @Argument(help: "The app.") var app: String
        @OptionGroup var options: OperatorOptions

        func run() async throws {
            try await options.perform { domain in
                try await domain.approvalHooks.remove(of: try AppID.checked(app))
            } onServer: { client in
                _ = try client.accepted(try await client.send(.DELETE, "/v1/apps/\(app)/veto"))
            }
            options.printer.print(["event": "removed", "app": .text(app)], otherwise: "removed the approval hook of \(app)")
        }
    }
}

extension OperatorOptions {
    fileprivate func show(_ hook: ApprovalHookBody, of app: String, event: String?) {
        printer.print(
            [
                "event": event.map(OutputValue.text), "app": .text(app), "url": .text(hook.url),
                "setAt": .text(hook.setAt), "secret": hook.secret.map(OutputValue.text),
            ], words: [event, app, hook.url, hook.secret, "since \(hook.setAt)"])
    }
}
