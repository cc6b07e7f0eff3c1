import ArgumentParser
import CarillonClient
import CarillonWire
import Foundation
import Logging
import ServiceLifecycle
import UnixSignals

struct ListenCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "listen", abstract: "Act as an app: open a channel, and print the messages that arrive on it.",
        discussion: """
            The state directory stores the device's identity and the channel token: with the same directory, the next start \
            has the same endpoint. Ctrl-C ends the command; the channel stays open, and messages wait for the next start. \
            Control characters in a message are printed as \\n, \\u001b and so on, in JSON too.

            Events in JSON: opened (token, host, endpoint, subscription), message (id, body or bodyBase64), closed (token), \
            error (code), pingFailed (code), recovered, crashed (id), missed (count), availability (network, service), \
            connectionFailed (address, reason, advice, retryMilliseconds).

            The first failure to connect, and each failure with another reason, is one line on standard error; the command retries.

            With --encrypted the channel accepts only messages that are encrypted for it, by `carillon send --encrypt-for` \
            or any Web Push library; these need the Web Push subscription that the command prints.
            """)

    @Option(help: "The server's address, such as http://127.0.0.1:8080; or CARILLON_SERVER in the environment.")
    var server: String?
    @Option(help: "A client key of the app, needed once, to register; or CARILLON_KEY in the environment.")
    var key: String?
    @Option(help: "The app.") var app: String
    @Option(help: "The channel's identifier, such as com.example.app.presence.") var channel: String
    @Option(help: "A directory that only this listener uses.") var state: String
    @OptionGroup var authority: AuthorityOption
    @Flag(help: "Print one JSON object per line.") var json = false
    @Flag(help: "Open the channel with keys of its own, and print its Web Push subscription.") var encrypted = false
    @Flag(name: .customLong("close"), help: "Close the channel instead: its token becomes invalid.") var closes = false

    func run() async throws {
        try await reportingFaults {
            do {
                try await listen()
            } catch let error as PushError {
                throw CommandFault(error)
            }
        }
    }

    private func listen() async throws {
        let server = try ServerChoice.url(server)
        var configuration = PushClient.Configuration(
            server: server, app: app, clientKey: key ?? Environment["CARILLON_KEY"], storageDirectory: state)
        configuration.logger = ClientLog.logger("carillon.listen", Printer(isJSON: json))
        configuration.trustRootsPath = authority.file
        let client = try PushClient(configuration: configuration)
        let listener = MessageListener(
            client: client, channel: try client.channel(channel), printer: Printer(isJSON: json), closes: closes,
            isEncrypted: encrypted)
        let interrupt = InterruptService()
        var group = ServiceGroupConfiguration(
            services: [
                .init(service: client),
                .init(service: listener, successTerminationBehavior: .gracefullyShutdownGroup),
                .init(service: interrupt, successTerminationBehavior: .gracefullyShutdownGroup),
            ],
            gracefulShutdownSignals: [.sigterm],
            logger: Logger(label: "carillon", factory: { _ in SwiftLogNoOpLogHandler() }))
        group.maximumGracefulShutdownDuration = .seconds(5)
        try await ServiceGroup(configuration: group).run()
        try interrupt.report("stopped listening; the channel stays open, and messages wait")
    }
}

extension CommandFault {
    init(_ error: PushError) {
        let code: ExitCode =
            switch error.code {
            case .storageUnavailable, .storageInUse, .storageDamaged, .storageTooNew, .storageMismatch:
                ExitStatus.dataDirectory
            case .serverUnreachable, .serverUnavailable: ExitStatus.unreachable
            case .registrationRefused: ExitStatus.notAllowed
            case .attachmentRefused where ["credential_invalid", "role_forbidden"].contains(error.serverCode):
                ExitStatus.notAllowed
            case .fileInvalid: ExitStatus.noInput
            case .attachmentChanged: ExitStatus.tryAgain
            case .fileExists: ExitStatus.output
            case .configurationInvalid where error.message.hasPrefix("trustRootsPath: "): ExitStatus.noInput
            default: ExitStatus.refused
            }
        // The message names the command's option instead of the library's setting.
        let message = error.message.replacing("trustRootsPath: ", with: "--ca: ", maxReplacements: 1)
        self.init(code, (error.serverCode.map { $0 + ": " } ?? "") + message)
    }
}
