package import CarillonCore
import NIOCore

/// What an operator can set about calls outward.
package struct OutwardSettings: Sendable {
    package var rules: CallRules
    package var pace: WorkPace.Limits
    /// A file of certificates that are trusted beside the system's, in PEM form, or of one in DER.
    package var authorityFile: String?
    /// The shortest interval of pings.
    package var shortestPingSeconds: Int
    /// How long an answer may take, from the connection on.
    package var answerSeconds: Int
    /// How long a call that is under way may still take when the server stops.
    package var stopMilliseconds: Int64
    package var lookUp: NameLookUp

    package init() {
        rules = CallRules()
        pace = WorkPace.Limits()
        shortestPingSeconds = WatchRegistrar.Settings().shortestIntervalSeconds
        answerSeconds = 10
        stopMilliseconds = 2000
        lookUp = .system
    }

    package static let longestAnswerSeconds = 15

    /// How long a call can take: shorter than ``WorkLease/seconds``.
    package static var longestCallMilliseconds: Int64 {
        NameResolver.patience.nanoseconds / 1_000_000 + OutwardCaller.connectMilliseconds
            + Int64(longestAnswerSeconds) * 1000
    }

    package var watches: WatchRegistrar.Settings {
        WatchRegistrar.Settings(rules: rules, shortestIntervalSeconds: shortestPingSeconds)
    }
}
