import ArgumentParser
import CarillonCore
import CarillonServer
import CarillonWire
import NIOHTTP1

/// `carillon apps realm`: the realm of an app.
struct RealmCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "realm",
        abstract:
            "Set, show and remove the realm of an app. Apps in one realm share their users and can call services of each other.",
        subcommands: [Set.self, Show.self, Remove.self])

    struct Set: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Put an app into a realm.",
            discussion: """
                A user name means the same user in all apps of a realm: add only apps whose users come from one identity \
                provider.
                """)
        @Argument(help: "The app.") var app: String
        @Argument(help: "The realm's name: 1 to 128 bytes.") var realm: String
        @OptionGroup var options: OperatorOptions

        func run() async throws {
            try await options.perform { domain in
                try await domain.services.setRealm(realm, of: try await domain.serial(ofApp: app))
                RealmCommand.show(realm, of: app, options)
            } onServer: { client in
                let body = try await client.call(
                    .PUT, "/v1/apps/\(app)/realm", RealmBody(realm: realm), as: RealmBody.self, with: ["realm"])
                RealmCommand.show(body.realm, of: app, options)
            }
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Show an app's realm.")
        @Argument(help: "The app.") var app: String
        @OptionGroup var options: OperatorOptions

        func run() async throws {
            try await options.perform { domain in
                RealmCommand.show(
                    try await domain.services.realm(of: try await domain.serial(ofApp: app)), of: app, options)
            } onServer: { client in
                // The response for an app without a realm is an empty object.
                let answer = try client.accepted(
                    try await client.send(.GET, "/v1/apps/\(app)/realm"),
                    as: { $0.has(["realm"]) || $0.has([]) && ($0.response.isNamed || $0.isOfNameless) })
                RealmCommand.show(try client.value(of: answer, as: RealmBody.self).realm, of: app, options)
            }
        }
    }

    struct Remove: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Take an app out of its realm.")
        @Argument(help: "The app.") var app: String
        @OptionGroup var options: OperatorOptions

        func run() async throws {
            try await options.perform { domain in
                try await domain.services.removeRealm { try await domain.serial(ofApp: app) }
            } onServer: { client in
                _ = try client.accepted(try await client.send(.DELETE, "/v1/apps/\(app)/realm"))
            }
            RealmCommand.show(nil, of: app, options)
        }
    }

    private static func show(_ realm: String?, of app: String, _ options: OperatorOptions) {
        options.printer.print(
            ["app": .text(app), "realm": .text(realm ?? "")],
            otherwise: realm.map { "\(app) shares its users in the realm \($0)" } ?? "\(app) shares its users with no app")
    }
}
