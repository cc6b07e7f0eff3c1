package import CarillonCore
import NIOSSL

/// What an operator can set about calls outward.
package struct OutwardSettings: Sendable {
    package var rules: CallRules
    package var pace: CallPace.Limits
    /// A PEM file of certificates that are trusted beside the system's.
    package var authorityFile: String?
    /// The shortest interval of pings.
    package var shortestPingSeconds: Int
    /// How long an answer may take, from the connection on.
    package var answerSeconds: Int
    package var lookUp: NameLookUp

    package init() {
        rules = CallRules()
        pace = CallPace.Limits()
        shortestPingSeconds = WatchRegistrar.Settings().shortestIntervalSeconds
        answerSeconds = 10
        lookUp = .system
    }

    /// With the time for resolving and connecting, shorter than ``CallRounds/leaseSeconds``.
    package static let longestAnswerSeconds = 15

    /// Whether a file can be what ``authorityFile`` wants.
    package static func holdsCertificates(_ file: String) -> Bool {
        (try? NIOSSLCertificate.fromPEMFile(file))?.isEmpty == false
    }

    package var watches: WatchRegistrar.Settings {
        WatchRegistrar.Settings(rules: rules, shortestIntervalSeconds: shortestPingSeconds)
    }
}
