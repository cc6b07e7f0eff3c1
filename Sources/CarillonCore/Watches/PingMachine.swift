import CarillonBasics
package import CarillonWire

/// The pings of one watch: the time of the next ping, and the notifications of the channel.
///
/// - *well*, `notified` is nil: the channel was not notified of a failure. Left by a failure, of which the channel is notified.
/// - *failing*, `notified` is a failure: the channel was notified of it. The same failure again is not reported; another one is.
///   An answer leads back to *well*, and the channel is notified by `recovered`.
///
/// A ping that failed by this server's own fault changes neither state. A backend that fails more than twice in a row is pinged
/// at intervals that double, up to an hour. A backend that answers with 2xx or 410 (lost token) keeps its interval. A ping that
/// can never be made, because the watch's secret is lost, is reported as a lost token. The app then sends its token to the
/// backend again, and the backend registers the watch again. Until then, the ping is tried once an hour.
package struct PingMachine: Equatable, Sendable {
    package enum Change: Equatable, Sendable {
        case pingFailed(PingFailure)
        case recovered
    }

    package struct Step: Equatable, Sendable {
        package var change: Change?
        package var dueAt: Timestamp
    }

    package private(set) var notified: PingFailure?
    /// The number of failures in a row. A lost token sets it to zero.
    package private(set) var failures: Int

    package init(notified: PingFailure? = nil, failures: Int = 0) {
        self.notified = notified
        self.failures = failures
    }

    /// The first ping is at a random time within its interval, and within this time.
    package static let firstWithinSeconds = 300
    private static let backOffSeconds = 3600
    private static let mostFailures = 1000
    private static let makeUpSeconds = 10

    /// - Parameter chance: A random number.
    package static func firstDue(every intervalSeconds: Int, at now: Timestamp, chance: UInt64) -> Timestamp {
        let span = UInt64(min(intervalSeconds, firstWithinSeconds)) * 1000
        return now.adding(milliseconds: Int64(chance % span))
    }

    package mutating func pinged(
        _ result: CallResult, every intervalSeconds: Int, at now: Timestamp, chance: UInt64
    ) -> Step {
        switch PingVerdict(result) {
        case .well:
            failures = 0
            let change = notified.map { _ in Change.recovered }
            notified = nil
            return Step(change: change, dueAt: due(after: intervalSeconds, at: now, chance))
        case .failed(let failure, _):
            failures = failure == .tokenLost ? 0 : min(failures + 1, Self.mostFailures)
            if case .impossible = result { failures = Self.mostFailures }
            let change = notified == failure ? nil : Change.pingFailed(failure)
            notified = failure
            let dueAt = due(after: backedOff(intervalSeconds), at: now, chance)
            let wait = result.wait.map { now.adding(seconds: $0.components.seconds) }
            return Step(change: change, dueAt: wait.map { max($0, dueAt) } ?? dueAt)
        case .none:
            let span = UInt64(min(Self.makeUpSeconds, intervalSeconds)) * 1000
            return Step(change: nil, dueAt: now.adding(milliseconds: Int64(chance % span) + 500))
        }
    }

    private func backedOff(_ seconds: Int) -> Int {
        guard failures > 2 else { return seconds }
        let backOff = BackOff(first: Int64(seconds), longest: Int64(max(seconds, Self.backOffSeconds)))
        return Int(backOff.delay(doublings: failures - 2))
    }

    /// Returns a time after the interval, changed randomly by up to a tenth, so that pings that were due together are spread.
    private func due(after seconds: Int, at now: Timestamp, _ chance: UInt64) -> Timestamp {
        let interval = Int64(seconds) * 1000
        return now.adding(milliseconds: interval - interval / 10 + Int64(chance % UInt64(interval / 5 + 1)))
    }
}

/// The result of a ping for the backend.
package enum PingVerdict: Equatable, Sendable {
    case well
    case failed(PingFailure, detail: String)
    /// The call could not be made, and reveals nothing about the backend.
    case none

    package init(_ result: CallResult) {
        switch result {
        case .answered(200..<300, _): self = .well
        case .answered(410, _): self = .failed(.tokenLost, detail: "the backend answered 410: it does not know the token")
        case .answered(let status, _):
            self = .failed(.invalidAnswer, detail: "the backend answered \(status) instead of 2xx or 410")
        case .failed(let failure, let detail): self = .failed(failure, detail: detail)
        case .notMade: self = .none
        case .impossible(let reason): self = .failed(.tokenLost, detail: reason)
        }
    }
}
