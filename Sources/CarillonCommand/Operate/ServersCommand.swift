import ArgumentParser
import CarillonBasics
import CarillonCore
import CarillonServer
import CarillonWire
import NIOHTTP1

/// `carillon apps servers`: the backend devices of an app.
struct ServersCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "servers",
        abstract: "Set which devices of an app are backend devices, which can call, and be called by, all of its users.",
        discussion: """
            A backend device runs the client library, or `carillon services provide`, and belongs to no user. All users of \
            its app, and of the apps in the app's realm, can call its services, and it can call theirs.
            """,
        subcommands: [Add.self, List.self, Remove.self])

    struct Add: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Make a device a backend device, or change its address and priority.",
            discussion:
                "A call to the app without a device goes to the connected backend device with the lowest priority number.")
        @Argument(help: "The app.") var app: String
        @Argument(help: "The device ID, 32 hexadecimal digits, which `carillon services provide` prints.") var device: String
        @Option(help: "A host name or address where apps can also reach the backend device; apps receive it.") var host:
            String?
        @Option(help: "The port at --host.") var port: Int?
        @Option(help: "1 is called first, 1000 last; among equal priorities the choice is random.") var priority = 1
        @OptionGroup var options: OperatorOptions

        func run() async throws {
            try await options.perform { domain in
                let place = try ClusterPlace.checked(host: host, port: port, priority: priority)
                let id = try DeviceID.checked(device)
                try await domain.services.setPlace(place, of: id, app: try await domain.serial(ofApp: app))
                ServersCommand.show(place.body(of: id), options)
            } onServer: { client in
                let place: JSONValue = [
                    "host": host.map(JSONValue.string), "port": port.map(JSONValue.integer), "priority": .integer(priority),
                ]
                let path = "/v1/apps/\(app)/servers/\(device)"
                ServersCommand.show(try await client.call(.PUT, path, place, as: ClusterServerBody.self), options)
            }
        }
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List the backend devices of an app.")
        @Argument(help: "The app.") var app: String
        @OptionGroup var options: OperatorOptions

        func run() async throws {
            try await options.perform { domain in
                for (device, place) in try await domain.services.cluster(of: try await domain.serial(ofApp: app)) {
                    ServersCommand.show(place.body(of: device), options)
                }
            } onServer: { client in
                for server in try await client.call(.GET, "/v1/apps/\(app)/servers", as: ClusterBody.self).servers {
                    ServersCommand.show(server, options)
                }
            }
        }
    }

    struct Remove: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract:
                "Make a backend device an ordinary device again: its requests end, and it can no longer call all users.")
        @Argument(help: "The app.") var app: String
        @Argument(help: "The device ID, 32 hexadecimal digits.") var device: String
        @OptionGroup var options: OperatorOptions

        func run() async throws {
            try await options.perform { domain in
                try await domain.services.removePlace(
                    of: try DeviceID.checked(device), app: try await domain.serial(ofApp: app))
            } onServer: { client in
                _ = try client.accepted(try await client.send(.DELETE, "/v1/apps/\(app)/servers/\(device)"))
            }
            options.printer.print(["removed": .text(device)], otherwise: "\(device) is no longer a backend device of \(app)")
        }
    }

    private static func show(_ server: ClusterServerBody, _ options: OperatorOptions) {
        let address = server.host.map { host in host + (server.port.map { ":\($0)" } ?? "") }
        options.printer.print(
            [
                "device": .text(server.device), "host": .text(server.host ?? ""), "port": .number(Int64(server.port ?? 0)),
                "priority": .number(Int64(server.priority)),
            ], otherwise: "\(server.device)  priority \(server.priority)" + (address.map { "  \($0)" } ?? ""))
    }
}
