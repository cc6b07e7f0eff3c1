import ArgumentParser
import CarillonAPNs
import Foundation

struct APNsSendCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "send", abstract: "Send a notification to one device or to millions.",
        discussion: """
            carillon apns send --key AuthKey_ABC1234567.p8 --team-id DEF1234567 --topic com.example.app \\
                --token 00ff… --title Kettle --body "The water boils."

            Tokens of apps that were built for development need --sandbox. --dry-run shows the request without sending it, \
            and needs neither credentials nor tokens.

            The command opens the connection first, and sends the first push alone: an error that would concern every push \
            is reported once, and nothing more is sent. After Ctrl-C the command starts no new push and waits for the \
            answers to the sent ones. The files of --key, --cert, --ca, --payload and --passphrase-file can be pipes.

            Exit codes: 0 all were accepted; 64 wrong usage; 65 some were refused; 66 a file cannot be read; 69 no answer; \
            75 refused for now, try again later; 77 the credentials are not accepted; 130 stopped by Ctrl-C.
            """)

    @OptionGroup(title: "Credentials") var credentials: APNsCredentialOptions
    @Option(
        help: ArgumentHelp(
            """
            The app's bundle ID. The suffix of the push type, such as .voip, is appended if it is missing. Optional with a \
            certificate for one app.
            """, valueName: "bundle-id"))
    var topic: String?
    @OptionGroup(title: "Recipients") var recipients: RecipientOptions
    @OptionGroup(title: "Content") var content: NotificationOptions
    @OptionGroup(title: "Service") var endpoint: APNsEndpointOptions
    @Option(help: ArgumentHelp("The maximum number of connections.", valueName: "n")) var connections = 8
    @Flag(help: "Show the request with its payload, and do not send it.") var dryRun = false
    @Flag(help: "Print one JSON object per line: one for each token, and a summary.") var json = false

    func validate() throws {
        guard (1...1000).contains(connections) else { throw ValidationError("--connections must be from 1 to 1000.") }
        if !dryRun {
            guard recipients.areGiven else {
                throw ValidationError("Name the recipients: --token, --tokens-file, or --channel.")
            }
            guard credentials.areGiven else {
                throw ValidationError("Name the credentials: --key FILE --key-id ID --team-id ID, or --cert FILE.")
            }
        }
        guard topic != nil || (credentials.cert != nil && recipients.channel == nil) else {
            throw ValidationError("Name the app: --topic com.example.app.")
        }
        let readers = [
            content.payload, recipients.tokensFile, credentials.key, credentials.cert, credentials.certKey,
            credentials.passphraseFile,
        ]
        guard readers.count(where: { $0 == "-" }) <= 1 else {
            throw ValidationError("Only one option can read standard input.")
        }
        if recipients.channel != nil { try checkBroadcast() }
    }

    private func checkBroadcast() throws {
        guard content.type == .liveActivity else {
            throw ValidationError(
                "A broadcast needs --live-activity update|end, or --payload FILE with --push-type liveactivity.")
        }
        guard content.activity.event != .start else {
            throw ValidationError("A broadcast can update and end a Live Activity, but not start one.")
        }
        guard content.collapseId == nil else {
            throw ValidationError("A broadcast has no collapse ID; leave out --collapse-id.")
        }
    }

    func run() async throws {
        try await reportingFaults {
            let push = try PreparedPush(content, topic: topic, channel: recipients.channel, now: Date())
            let client = try makeClient(push)
            // What is wrong with the notification is known before anything is opened.
            let headers = try reportingAPNsFaults { try client.headers(of: push.notification, toChannel: push.channel) }
            if dryRun { return show(push, headers) }
            if let channel = recipients.channel {
                try await broadcast(push, to: channel, client)
            } else if let feed = try recipients.feed() {
                try await send(push, to: feed, client)
            }
        }
    }

    private var printer: Printer { Printer(isJSON: json) }

    private func makeClient(_ push: PreparedPush) throws -> APNsClient {
        let credentials =
            dryRun && !credentials.areGiven ? try APNsCredentials.ofNobody() : try credentials.load()
        var configuration = try endpoint.configuration(credentials)
        configuration.bundleID = push.bundleID
        configuration.pool.maximum = connections
        configuration.batchWindow = max(configuration.batchWindow, 250 * connections)
        return try reportingAPNsFaults { try APNsClient(configuration) }
    }

    private func show(_ push: PreparedPush, _ headers: [(name: String, value: String)]) {
        let path: String
        if recipients.channel != nil {
            path = "/4/broadcasts/apps/\(push.bundleID ?? "")"
        } else {
            path = "/3/device/\(recipients.token.first ?? "TOKEN")"
        }
        let isToken = credentials.cert == nil
        DryRun(
            url: "\(endpoint.push)\(path)",
            headers: (isToken ? [("authorization", "bearer (a token, signed when it is sent)")] : []) + headers,
            payload: push.notification.jsonString
        ).show(printer)
    }

    private func send(_ push: PreparedPush, to feed: TokenFeed, _ client: APNsClient) async throws {
        do {
            try await Stopping.perform(
                with: client,
                otherwise: CommandFault(ExitStatus.interrupted, "stopped before the connection was open; nothing was sent")
            ) { try await endpoint.connect(client, to: endpoint.push) }
        } catch {
            let isStopped = (error as? CommandFault)?.code == ExitStatus.interrupted
            let summary = SendSummary(tally: SendTally(), duration: .zero, end: isStopped ? .interrupted : .noService)
            if json { printer.print(summary.values, otherwise: "") }
            throw error
        }
        let code = try await PushRun(client: client, notification: push.notification, feed: feed, printer: printer).run()
        await client.shutDown()
        if code != .success { throw code }
    }

    private func broadcast(_ push: PreparedPush, to channel: String, _ client: APNsClient) async throws {
        try await Stopping.perform(
            with: client,
            otherwise: CommandFault(ExitStatus.interrupted, "stopped before the connection was open; nothing was sent")
        ) { try await endpoint.connect(client, to: endpoint.push) }
        let result = try await Stopping.perform(
            with: client,
            otherwise: CommandFault(
                ExitStatus.interrupted, "stopped before the service answered; the broadcast may have been sent")
        ) { () async -> Result<APNsResponse, APNsError> in
            do throws(APNsError) {
                return .success(try await client.broadcast(push.notification, to: channel))
            } catch {
                return .failure(error)
            }
        }
        var tally = SendTally()
        tally.add(result)
        let report = PushReport(recipient: .channel(channel), result: result)
        printer.print(report.values, otherwise: report.sentence)
        await client.shutDown()
        if tally.exitStatus != .success { throw tally.exitStatus }
    }
}
