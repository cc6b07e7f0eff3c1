import ArgumentParser
import CarillonClient
import Foundation

struct ServicesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "services", abstract: "Call services of other apps, provide services, and check their definitions.",
        discussion: """
            A service has an ID, a version and methods. Apps of the same user can call an app that offers it, encrypted \
            from device to device. Each of these commands that uses a server is a device of its own, which its state \
            directory stores.
            """,
        subcommands: [
            Check.self, List.self, ServiceCallCommand.self, ServiceResultsCommand.self, ServiceProvideCommand.self,
            ServiceIdentitiesCommand.self, ServiceAcceptCommand.self,
        ])

    struct Check: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Check a service definition, and show the place of each error.",
            discussion:
                "The exit code is 65 if the definition is not valid. The format is docs/service-definition.schema.json.")

        @Argument(help: "The definition's file; - for standard input.", completion: .file()) var file: String
        @Flag(help: "Print one JSON object.") var json = false

        func run() async throws {
            try await reportingFaults {
                let printer = Printer(isJSON: json)
                do {
                    let definition = try ServiceDefinition(try InputFile.bytes(file))
                    printer.print(
                        [
                            "service": .text(definition.service), "version": .text(definition.version),
                            "methods": .list(definition.methods.keys.sorted().map { .text($0) }),
                        ],
                        otherwise: "good  \(definition.service) \(definition.version): "
                            + definition.methods.keys.sorted().joined(separator: ", "))
                } catch let faults as ServiceDefinitionFaults {
                    guard json else {
                        throw CommandFault(
                            ExitStatus.refused, "\(file) is not a valid service definition",
                            details: faults.description.split(separator: "\n").map(String.init))
                    }
                    printer.print(
                        [
                            "faults": .list(
                                faults.faults.map { .object(["place": .text($0.place), "text": .text($0.text)]) })
                        ],
                        otherwise: "")
                    throw ExitStatus.refused
                }
            }
        }
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List the providers whose services this device can call.")

        @Option(help: "The ID of a service. Default: all services.") var service: String?
        @Option(help: "A version of the service. Default: all versions.") var version: String?
        @Option(help: "Devices of users (application), or backend devices (server). Default: both.") var type: ProviderType?
        @Option(help: "The user whose devices are listed; only for backend devices.") var user: String?
        @Flag(help: "Keep running, and list the providers again after each change, until Ctrl-C.") var watch = false
        @OptionGroup var options: ServiceOptions

        func run() async throws {
            try await reportingFaults(interrupted: "interrupted") {
                try await options.withClient { client in
                    let find = {
                        for provider in try await client.serviceClient.providers(
                            of: service, version: version, type: type?.kind, user: user)
                        {
                            show(provider, options.printer)
                        }
                    }
                    guard watch else { return try await find() }
                    for await providers in client.serviceClient.providerChanges {
                        options.printer.print(
                            ["event": "providers", "count": .number(Int64(providers.count))],
                            otherwise: "providers  \(providers.count)")
                        try await find()
                    }
                }
            }
        }

        private func show(_ provider: FoundProvider, _ printer: Printer) {
            let (app, device) = (provider.application.app, provider.application.device ?? "")
            printer.print(
                [
                    "app": .text(app), "device": .text(device), "name": .text(provider.name),
                    "version": .text(provider.version), "live": .flag(provider.isLive),
                    "type": .text(provider.type.rawValue), "fingerprint": .text(provider.fingerprint),
                    "services": .list(
                        provider.services.map { .object(["id": .text($0.id), "version": .text($0.version)]) }),
                ].merging(
                    provider.server.map {
                        [
                            "host": .text($0.host ?? ""), "port": .number(Int64($0.port ?? 0)),
                            "priority": .number(Int64($0.priority)),
                        ]
                    } ?? [:]
                ) { $1 },
                lines: [
                    "\(app)/\(device)  \(provider.name) \(provider.version)\(provider.isLive ? "  live" : "")"
                        + (provider.server.map { "  backend device, priority \($0.priority)" } ?? ""),
                    "  fingerprint  \(provider.fingerprint)",
                ] + provider.services.map { "  \($0.id) \($0.version)" })
        }
    }
}

/// The kinds of providers that can be searched for.
enum ProviderType: String, CaseIterable, ExpressibleByArgument {
    case application
    case server

    var kind: FoundProvider.Kind {
        switch self {
        case .application: .application
        case .server: .server
        }
    }
}
