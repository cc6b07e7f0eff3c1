import ArgumentParser
import CarillonAPNs
import Foundation

struct APNsCheckCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check", abstract: "Say whether credentials and network are fine, one line for each thing.",
        discussion: """
            It reads the key or certificate, opens a connection to each address of the service, and SENDS ONE PUSH, to a \
            device token that no device has (the text "carillon apns check is no device" in hexadecimal digits): \
            BadDeviceToken is the answer to good credentials. Nobody sees anything.

            What it cannot know: whether the topic is right (a token that exists shows it), and whether this machine's \
            clock is.

            Exit codes: 0 nothing is wrong, at most a warning; 64 wrong usage; 66 a file cannot be read; 69 the service \
            cannot be reached; 75 it cannot say now; 77 the credentials are wrong.
            """)

    @OptionGroup(title: "Who sends") var credentials: APNsCredentialOptions
    @Option(
        help: ArgumentHelp(
            "The app's bundle ID. May be left out with a certificate for one app.", valueName: "bundle-id"))
    var topic: String?
    @OptionGroup(title: "Where") var endpoint: APNsEndpointOptions
    @Option(
        help: ArgumentHelp("With --endpoint: where that service manages broadcast channels.", valueName: "url"),
        transform: ServiceAddress.argument)
    var manage: ServiceAddress?
    @Flag(help: "Print one JSON object a line.") var json = false

    func validate() throws {
        guard credentials.areGiven else {
            throw ValidationError("Say what to check: --key FILE --key-id ID --team-id ID, or --cert FILE.")
        }
        guard topic != nil || credentials.cert != nil else {
            throw ValidationError("Say the app: --topic com.example.app.")
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
            // Without usable credentials, the network can still be checked.
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
            otherwise: wrong.isEmpty ? "You can send." : "You cannot send yet: \(wrong.count) wrong.")
        if let first = wrong.first { throw first.exitStatus }
    }
}
