import ArgumentParser
import CarillonClient
import Foundation

struct ServiceCallCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "call", abstract: "Call a service of another app, and print the result.",
        discussion: """
            The command prints the result as JSON, and then the paths of its files. Bytes are {"$bytes": "…"}, in \
            base64url. An error of the service is printed on standard error; the exit code is 65 then.

              carillon services call com.good.gdservice.transfer-file/1.0.0.0/transferFile --of com.example.files --attach report.pdf …
            """)

    @Argument(help: "The service, its version and the method: com.example.echo/1.0/echo.") var method: String
    @Option(help: "The app, or one of its devices: com.example.files or com.example.files/DEVICE.") var of: String
    @Option(help: "The parameters, as JSON.") var parameters = "null"
    @Option(
        help: ArgumentHelp(
            "A file to attach, with its file name or another name; can be repeated.",
            valueName: "[name=]path"),
        completion: .file())
    var attach: [String] = []
    @Option(help: "How long the provider has, in seconds.") var deadline = 3600
    @Option(help: "The app that should come to the front: preferMe, preferPeer or none; the provider receives it.")
    var foreground = "none"
    @Option(help: "A service definition to check the request and its reply with.", completion: .file()) var definition:
        String?
    @OptionGroup var options: ServiceOptions

    func validate() throws {
        guard (1...604_800).contains(deadline) else { throw ValidationError("--deadline must be from 1 to 604800 seconds.") }
        guard ForegroundPreference(rawValue: foreground) != nil else {
            throw ValidationError("--foreground must be preferMe, preferPeer or none.")
        }
    }

    func run() async throws {
        try await reportingFaults(
            interrupted: "interrupted; if the request was sent, `carillon services results` prints its result"
        ) {
            try await ServiceOptions.reporting {
                let method = try ServiceMethod.parsed(method)
                let parameters = try ServiceValue.parsed(parameters)
                let definition = try definition.map { try DefinitionFile.read($0) }
                try await options.withClient { client in
                    if let definition { await client.serviceClient.use(definition) }
                    let parts = of.split(separator: "/", maxSplits: 1).map(String.init)
                    let address = ServiceApplication(app: parts.first ?? "", device: parts.count > 1 ? parts[1] : nil)
                    do {
                        let reply = try await client.serviceClient.call(
                            method, of: address, parameters, files: attach.map { AttachedFile.parsed($0) },
                            deadline: .seconds(deadline),
                            foreground: ForegroundPreference(rawValue: foreground) ?? .none)
                        show(reply)
                    } catch {
                        // This also runs after an interruption, which cancels this task. It ends after two seconds at most.
                        await Task { await client.serviceClient.waitForRemovals(atMost: .seconds(2)) }.value
                        throw error
                    }
                }
            }
        }
    }

    private func show(_ reply: ServiceReply) {
        options.printer.print(
            [
                "event": "reply", "value": .text(reply.value.plainText),
                "attachments": .list(reply.attachments.map { .text($0) }),
            ], lines: [reply.value.plainText] + reply.attachments)
    }
}

struct ServiceResultsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "results", abstract: "Print the results of calls that were interrupted, each once.")

    @Option(help: "How long to wait for a missing result, in seconds.") var wait = 5
    @OptionGroup var options: ServiceOptions

    func validate() throws {
        guard (0...86_400).contains(wait) else { throw ValidationError("--wait must be from 0 to 86400 seconds.") }
    }

    func run() async throws {
        try await reportingFaults(interrupted: "interrupted") {
            try await options.withClient { client in
                let replies = client.serviceClient.replies
                let printer = options.printer
                let reading = Task {
                    for await reply in replies {
                        Self.show(reply, printer)
                        await reply.confirm()
                    }
                }
                try await Task.sleep(for: .seconds(wait))
                reading.cancel()
                await reading.value
            }
        }
    }

    private static func show(_ reply: LateReply, _ printer: Printer) {
        var values: [String: OutputValue] = ["event": "result", "id": .text(reply.id)]
        switch reply.result {
        case .success(let success):
            values["value"] = .text(success.value.plainText)
            values["attachments"] = .list(success.attachments.map { .text($0) })
            printer.print(
                values,
                lines: ["result  \(reply.id)  \(success.value.plainText)"] + success.attachments)
        case .failure(let error):
            values["error"] = .text(error.number.map(String.init) ?? error.code.name)
            values["text"] = .text(error.text)
            printer.print(values, otherwise: "failed  \(reply.id)  \(error)")
        }
    }
}

enum DefinitionFile {
    static func read(_ path: String) throws -> ServiceDefinition {
        do {
            return try ServiceDefinition(try InputFile.bytes(path))
        } catch let faults as ServiceDefinitionFaults {
            throw CommandFault(
                ExitStatus.refused, "\(path) is not a valid service definition",
                details: faults.description.split(separator: "\n").map(String.init))
        }
    }
}
