import ArgumentParser
import CarillonAPNs
import Foundation

/// Checks a key or a certificate in its file.
struct CredentialCheck {
    let options: APNsCredentialOptions
    let now: Date

    /// The number of days before the end of a certificate from which a warning is shown.
    static let daysOfWarning = 30

    /// Reads the files once, because they can be pipes.
    /// - Returns: The usable credentials, if any, and the finding.
    func look() -> (usable: APNsCredentials?, finding: CheckFinding) {
        let subject: CheckFinding.Subject = options.isToken ? .key : .certificate
        let fault: CommandFault
        do {
            return try reportingAPNsFaults {
                if let key = try options.tokenKey() {
                    let sentence = "\(options.key ?? "") is a key for signing tokens: key \(key.keyID) of team \(key.teamID)"
                    return (.token(key), CheckFinding(subject: subject, verdict: .ok, sentence: sentence))
                }
                guard let certificate = try options.certificate() else {
                    throw CommandFault(.failure, "no credentials are named")
                }
                let finding = Self.finding(certificate, now: now)
                return (finding.verdict == .wrong ? nil : .certificate(certificate), finding)
            }
        } catch let known as CommandFault {
            fault = known
        } catch {
            fault = CommandFault(.failure, FaultSentence.of(error))
        }
        return (
            nil, CheckFinding(subject: subject, verdict: .wrong, sentence: fault.message, exitStatus: fault.code)
        )
    }

    private static func finding(_ certificate: APNsCertificate, now: Date) -> CheckFinding {
        finding(from: certificate.validFrom, until: certificate.expiresAt, now: now)
    }

    /// Compares with this machine's clock, because no other clock is available.
    static func finding(from start: Date, until end: Date, now: Date) -> CheckFinding {
        let days = Int((end.timeIntervalSince(now) / 86_400).rounded(.down))
        guard end > now else {
            return CheckFinding(
                subject: .certificate, verdict: .wrong,
                sentence:
                    "it expired on \(day(end)), and this machine's clock shows \(day(now)); create a new certificate in Apple's developer portal",
                exitStatus: ExitStatus.notAllowed)
        }
        guard start <= now else {
            return CheckFinding(
                subject: .certificate, verdict: .wrong,
                sentence:
                    "it is not valid before \(day(start)), and this machine's clock shows \(day(now)); check the clock",
                exitStatus: ExitStatus.notAllowed)
        }
        let isShort = days < daysOfWarning
        return CheckFinding(
            subject: .certificate, verdict: isShort ? .warning : .ok,
            sentence: "it is valid from \(day(start)) until \(day(end)): \(days) \(days == 1 ? "day" : "days") left"
                + (isShort ? "; create a new certificate in Apple's developer portal" : ""), daysLeft: days)
    }

    private static func day(_ date: Date) -> String { date.formatted(.iso8601.year().month().day()) }
}
