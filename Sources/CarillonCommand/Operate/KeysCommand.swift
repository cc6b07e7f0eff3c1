import ArgumentParser
import CarillonCore
import CarillonServer
import CarillonWire
import NIOHTTP1

struct KeysCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "keys", abstract: "Create, list, rotate and revoke API keys.",
        subcommands: [Create.self, List.self, Rotate.self, Revoke.self])

    struct Create: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Create an API key.", discussion: "The secret is printed once; the server stores only its hash.")
        @Option(help: "The role: admin, sender or client.") var role: String
        @Option(help: "The app of a sender or client key.") var app: String?
        @Option(help: "A name that describes the use of the key: up to 256 bytes.") var name: String?
        @OptionGroup var options: OperatorOptions
        @OptionGroup var new: NewStoreOption

        func run() async throws {
            try await options.perform(makesMissing: new.makesMissing) { domain in
                let (key, secret) = try await domain.keys.createKey(
                    role: try KeyRole.checked(role), app: try app.map(AppID.checked), name: name)
                options.show(KeyBody(key, secret: secret.text), event: "created")
            } onServer: { client in
                let body = CreateKey(role: role, app: app, name: name)
                options.show(try await client.call(.POST, "/v1/keys", body, as: KeyBody.self), event: "created")
            }
        }
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List all API keys, without their secrets.")
        @OptionGroup var options: OperatorOptions

        func run() async throws {
            try await options.perform { domain in
                for key in try await domain.keys.list() { options.show(KeyBody(key), event: nil) }
            } onServer: { client in
                for key in try await client.call(.GET, "/v1/keys", as: KeyList.self).keys { options.show(key, event: nil) }
            }
        }
    }

    struct Rotate: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Replace the secret of an API key.")
        @Argument(help: "The key's ID.") var id: String
        @Option(help: "How many seconds the earlier secret stays valid.") var overlap = 0
        @OptionGroup var options: OperatorOptions

        func run() async throws {
            try await options.perform { domain in
                let (key, secret) = try await domain.keys.rotate(try KeyID.checked(id), overlapSeconds: overlap)
                options.show(KeyBody(key, secret: secret.text), event: "rotated")
            } onServer: { client in
                let body = RotateKey(overlapSeconds: overlap)
                options.show(
                    try await client.call(.POST, "/v1/keys/\(id)/rotate", body, as: KeyBody.self), event: "rotated")
            }
        }
    }

    struct Revoke: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Revoke an API key. It stops working at once.",
            discussion: """
                Devices that registered with a client key have device credentials of their own, and stay; --delete-devices \
                deletes them too, with their channels and waiting messages, even if the key was already revoked.
                """)
        @Argument(help: "The key's ID.") var id: String
        @Flag(help: "Also delete the devices that registered with the key.") var deleteDevices = false
        @OptionGroup var options: OperatorOptions

        func run() async throws {
            try await options.perform { domain in
                let key = try KeyID.checked(id)
                guard deleteDevices else { return try await domain.keys.revoke(key) }
                try await domain.devices.deleteAll(registeredWith: domain.keys.ensureRevoked(key))
            } onServer: { client in
                let path = "/v1/keys/\(id)" + (deleteDevices ? "?devices=delete" : "")
                _ = try client.accepted(try await client.send(.DELETE, path))
            }
            options.printer.print(["event": "revoked", "id": .text(id)], otherwise: "revoked key \(id)")
        }
    }
}

extension OperatorOptions {
    fileprivate func show(_ key: KeyBody, event: String?) {
        printer.print(
            [
                "event": event.map(OutputValue.text), "id": .text(key.id), "role": .text(key.role),
                "createdAt": .text(key.createdAt), "app": key.app.map(OutputValue.text),
                "name": key.name.map(OutputValue.text), "revokedAt": key.revokedAt.map(OutputValue.text),
                "secret": key.secret.map(OutputValue.text),
            ],
            words: [
                event, key.id, key.role, key.app, key.name.map { "\"\($0)\"" }, key.revokedAt.map { "revoked \($0)" },
                key.secret,
            ])
    }
}
