package import CarillonCore
import NIOCore

/// The settings of outgoing calls.
package struct OutwardSettings: Sendable {
    package var rules: CallRules
    package var pace: WorkPace.Limits
    /// A file of certificates that are trusted in addition to the system's, in PEM, or one certificate in DER.
    package var authorityFile: String?
    /// The shortest interval of pings.
    package var shortestPingSeconds: Int
    /// The longest time for a response, from the connection on.
    package var answerSeconds: Int
    /// The longest time for a pending call after the server began to stop.
    package var stopMilliseconds: Int64
    package var lookup: NameLookup

    package init() {
        rules = CallRules()
        pace = WorkPace.Limits()
        shortestPingSeconds = WatchRegistrar.Settings().shortestIntervalSeconds
        answerSeconds = 10
        stopMilliseconds = 2000
        lookup = .system
    }

    package static let longestAnswerSeconds = 15

    /// The longest duration of a call. It is shorter than ``WorkLease/seconds``.
    package static var longestCallMilliseconds: Int64 {
        NameResolver.patience.nanoseconds / 1_000_000 + OutwardCaller.connectMilliseconds
            + Int64(longestAnswerSeconds) * 1000
    }

    package var watches: WatchRegistrar.Settings {
        WatchRegistrar.Settings(rules: rules, shortestIntervalSeconds: shortestPingSeconds)
    }
}
