import ArgumentParser
import CarillonAPNs
import Foundation

struct APNsCheckCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check", abstract: "Check credentials and network, with one line for each check.",
        discussion: """
            The command reads the key or certificate, opens a connection to each address of the service, and SENDS ONE \
            PUSH, to a device token that no device has (the text "carillon apns check is no device" in hexadecimal digits). \
            The answer to good credentials is BadDeviceToken. No device shows anything.

            The command cannot check the topic (only a push to an existing token shows whether it is right) and this \
            machine's clock.

            Exit codes: 0 no error, or only warnings; 64 wrong usage; 66 a file cannot be read; 69 the service cannot be \
            reached; 75 the service cannot answer now; 77 the credentials are wrong.
            """)

    @OptionGroup(title: "Credentials") var credentials: APNsCredentialOptions
    @Option(
        help: ArgumentHelp(
            "The app's bundle ID. Optional with a certificate for one app.", valueName: "bundle-id"))
    var topic: String?
    @OptionGroup(title: "Service") var endpoint: APNsEndpointOptions
    @Option(
        help: ArgumentHelp(
            "With --endpoint: the address at which that service manages broadcast channels.", valueName: "url"),
        transform: ServiceAddress.argument)
    var manage: ServiceAddress?
    @Flag(help: "Print one JSON object per line.") var json = false

    func validate() throws {
        guard credentials.areGiven else {
            throw ValidationError("Name the credentials to check: --key FILE --key-id ID --team-id ID, or --cert FILE.")
        }
        guard topic != nil || credentials.cert != nil else {
            throw ValidationError("Name the app: --topic com.example.app.")
        }
    }

    func run() async throws {
        try await reportingFaults {
            let printer = Printer(isJSON: json)
            var findings: [CheckFinding] = []
            func say(_ finding: CheckFinding) {
                finding.print(printer)
                findings.append(finding)
            }
            let (usable, finding) = CredentialCheck(options: credentials, now: Date()).look()
            say(finding)
            // Without usable credentials the network can still be looked at.
            let client = try makeClient(try usable ?? APNsCredentials.ofNobody())
            var isReached = false
            for check in ConnectionCheck.all(endpoint, manage: manage) {
                let finding = await check.finding(client)
                say(finding)
                if check.purpose == .push { isReached = finding.verdict == .ok }
            }
            if usable != nil, isReached {
                say(await AcceptanceCheck.finding(client, topic: topic.map { Topic($0, for: .background).text }))
            }
            await client.shutDown()
            try conclude(findings, printer)
        }
    }

    private func makeClient(_ credentials: APNsCredentials) throws -> APNsClient {
        var configuration = try endpoint.configuration(credentials)
        configuration.retryPolicy = .never
        return try reportingAPNsFaults { try APNsClient(configuration) }
    }

    private func conclude(_ findings: [CheckFinding], _ printer: Printer) throws {
        let wrong = findings.filter { $0.verdict == .wrong }
        let warnings = findings.count { $0.verdict == .warning }
        let verdict: CheckFinding.Verdict = !wrong.isEmpty ? .wrong : warnings > 0 ? .warning : .ok
        printer.print(
            [
                "event": "summary", "verdict": .text(verdict.rawValue), "wrong": .number(Int64(wrong.count)),
                "warnings": .number(Int64(warnings)),
            ],
            otherwise: wrong.isEmpty ? "You can send." : "You cannot send yet: \(wrong.count) of the checks failed.")
        if let first = wrong.first { throw first.exitStatus }
    }
}
