import ArgumentParser
import CarillonCore
import CarillonServer
import CarillonWire
import NIOHTTP1

struct AppsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "apps", abstract: "Create, list and delete apps, and set their push credentials, rules and texts.",
        subcommands: [
            Create.self, List.self, Delete.self, CredentialsCommand.self, AlertCommand.self, UsersCommand.self,
            ApprovalHookCommand.self, ParametersCommand.self, AuditCommand.self, RealmCommand.self, ServersCommand.self,
        ])

    struct Create: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Create an app.")
        @Argument(help: "Its name, such as com.example.app.") var id: String
        @OptionGroup var options: OperatorOptions
        @OptionGroup var new: NewStoreOption

        func run() async throws {
            try await options.perform(makesMissing: new.makesMissing) { domain in
                show(AppBody(try await domain.apps.create(try AppID.checked(id))))
            } onServer: { client in
                show(try await client.call(.POST, "/v1/apps", CreateApp(id: id), as: AppBody.self))
            }
        }

        private func show(_ app: AppBody) {
            options.printer.print(["event": "created", "app": .text(app.id)], otherwise: "created app \(app.id)")
        }
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List all apps.")
        @OptionGroup var options: OperatorOptions

        func run() async throws {
            try await options.perform { domain in
                show(try await domain.apps.list().map(AppBody.init))
            } onServer: { client in
                show(try await client.call(.GET, "/v1/apps", as: AppList.self).apps)
            }
        }

        private func show(_ apps: [AppBody]) {
            for app in apps {
                options.printer.print(
                    ["app": .text(app.id), "createdAt": .text(app.createdAt)], otherwise: "\(app.id)  since \(app.createdAt)"
                )
            }
        }
    }

    struct Delete: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Delete an app with its keys, devices, channels and waiting messages.")
        @Argument(help: "Its name.") var id: String
        @OptionGroup var options: OperatorOptions

        func run() async throws {
            try await options.perform { domain in
                try await domain.deleteApp(try AppID.checked(id))
            } onServer: { client in
                _ = try client.accepted(try await client.send(.DELETE, "/v1/apps/\(id)"))
            }
            options.printer.print(["event": "deleted", "app": .text(id)], otherwise: "deleted app \(id)")
        }
    }
}
