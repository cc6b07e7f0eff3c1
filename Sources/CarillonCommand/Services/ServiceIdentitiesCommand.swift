import ArgumentParser
import CarillonClient
import Foundation

struct ServiceIdentitiesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "identities", abstract: "List the identities of other devices that this device accepted.",
        discussion: """
            Each install is listed with its fingerprint, and with the fingerprint of another identity that it came with since. `carillon \
            services accept` accepts the other identity. The command does not call the server. A backend device lists one identity for each user of a device.
            """)

    @OptionGroup var options: ServiceOptions

    func run() async throws {
        try await reportingFaults(interrupted: "interrupted") {
            try await ServiceOptions.reporting {
                let client = try await options.makeClient(signsIn: false)
                for identity in try await client.serviceClient.identities() { Self.show(identity, options.printer) }
            }
        }
    }

    private static func show(_ identity: ServiceIdentity, _ printer: Printer) {
        let (app, device) = (identity.application.app, identity.application.device ?? "")
        var lines = ["\(app)/\(device)", "  fingerprint  \(identity.fingerprint)"]
        if let user = identity.user { lines[0] += "  \(user)" }
        if let offered = identity.offeredFingerprint { lines.append("  not accepted  \(offered)") }
        printer.print(
            [
                "app": .text(app), "device": .text(device), "user": .text(identity.user ?? ""),
                "fingerprint": .text(identity.fingerprint), "offered": .text(identity.offeredFingerprint ?? ""),
            ], lines: lines)
    }
}

struct ServiceAcceptCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "accept", abstract: "Accept another identity of an install, after its fingerprint was compared.",
        discussion: """
            Calls to an install with another identity than the accepted one, and its requests, end with identity_changed. The command shows \
            the fingerprint of the other identity. Compare it with the fingerprint that `carillon services provide` prints on the other \
            device. On a terminal the command asks before it accepts; elsewhere --fingerprint is required.

              carillon services accept com.example.files/DEVICE --fingerprint "33e0 9683 …" --app com.example.mail --state ./mail …
            """)

    @Argument(help: "The install: com.example.files/DEVICE.") var install: String
    @Option(help: "The fingerprint of the identity to accept. It is required if standard input is not a terminal.")
    var fingerprint: String?
    @OptionGroup var options: ServiceOptions

    private var application: ServiceApplication? {
        let parts = install.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 2, parts.allSatisfy({ !$0.isEmpty }) else { return nil }
        return ServiceApplication(app: parts[0], device: parts[1])
    }

    func validate() throws {
        guard application != nil else {
            throw ValidationError("\"\(install)\" is not an install, such as com.example.files/DEVICE.")
        }
    }

    func run() async throws {
        try await reportingFaults(interrupted: "interrupted; nothing was accepted") {
            try await ServiceOptions.reporting {
                guard let application else { return }
                let client = try await options.makeClient(signsIn: false)
                let known = try await client.serviceClient.identities().filter { $0.application == application }
                let choice = try IdentityChoice.make(
                    install, accepted: known.map(\.fingerprint), offered: known.compactMap(\.offeredFingerprint),
                    wanted: fingerprint, isTerminal: isatty(STDIN_FILENO) == 1)
                for fingerprint in choice.fingerprints where !choice.mustAsk || Self.ask(install, known, fingerprint) {
                    guard try await client.serviceClient.accept(application, fingerprint: fingerprint) else { continue }
                    options.printer.print(
                        [
                            "event": "accepted", "app": .text(application.app), "device": .text(application.device ?? ""),
                            "fingerprint": .text(fingerprint),
                        ], otherwise: "accepted  \(install)  \(fingerprint)")
                }
            }
        }
    }

    private static func ask(_ install: String, _ known: [ServiceIdentity], _ fingerprint: String) -> Bool {
        let identity = known.first { $0.offeredFingerprint == fingerprint }
        StandardError.print("\(install)" + (identity?.user.map { "  \($0)" } ?? ""))
        StandardError.print("  accepted  \(identity?.fingerprint ?? "")")
        StandardError.print("  came with \(fingerprint)")
        StandardError.print("Does the other device show this fingerprint, and do you accept it? [y/N]")
        return ["y", "yes"].contains((readLine() ?? "").lowercased())
    }
}

/// The identities that `services accept` accepts.
struct IdentityChoice: Equatable {
    var fingerprints: [String]
    /// Whether the user must confirm each identity.
    var mustAsk: Bool

    /// - Parameters:
    ///   - accepted: The accepted fingerprints of the install.
    ///   - offered: The fingerprints that the install presented and that are not accepted yet.
    ///   - wanted: The fingerprint in the command's arguments.
    static func make(
        _ install: String, accepted: [String], offered: [String], wanted: String?, isTerminal: Bool
    ) throws -> IdentityChoice {
        guard let first = accepted.first else {
            throw CommandFault(
                ExitStatus.refused, "\(install) is not known here; `carillon services identities` lists the known installs")
        }
        guard let last = offered.last else {
            throw CommandFault(
                ExitStatus.refused, "\(install) came with no other identity; the accepted fingerprint is \(first)")
        }
        if let wanted {
            guard let match = offered.first(where: { plain($0) == plain(wanted) }) else {
                throw CommandFault(
                    ExitStatus.refused,
                    "\(install) came with the fingerprint \(offered.joined(separator: " and ")), and not with \(wanted)")
            }
            return IdentityChoice(fingerprints: [match], mustAsk: false)
        }
        guard isTerminal else {
            throw CommandFault(
                .validationFailure,
                "--fingerprint is required if standard input is not a terminal; \(install) came with the fingerprint \(last), which must be compared with what the other device shows"
            )
        }
        return IdentityChoice(fingerprints: offered, mustAsk: true)
    }

    private static func plain(_ fingerprint: String) -> String {
        fingerprint.filter { !$0.isWhitespace }.lowercased()
    }
}
