package import CarillonWire

/// The pings of one watch: when the next is due, and what the channel is told.
///
/// - *well*, `notified` is nil: the channel believes that its back end answers. Left by a failure, of which it is told.
/// - *failing*, `notified` is a failure: the channel knows of it. The same failure again is not told; another one is; an
///   answer leads back to *well*, and `recovered` is told.
///
/// A ping that could not be made by this server's own fault changes neither. A back end that fails more than twice in a
/// row is pinged at intervals that double, up to an hour; one that answers, even that it lost the token, is not.
/// A ping that cannot be made at all, as the watch's secret is lost, is told as a lost token: the app gives its token to
/// the back end again, which registers the watch again. Until then it is looked at once an hour.
package struct PingMachine: Equatable, Sendable {
    package enum News: Equatable, Sendable {
        case pingFailed(PingFailure)
        case recovered
    }

    package struct Step: Equatable, Sendable {
        package var news: News?
        package var dueAt: Timestamp
    }

    package private(set) var notified: PingFailure?
    /// In a row, those of an unreachable back end.
    package private(set) var failures: Int

    package init(notified: PingFailure? = nil, failures: Int = 0) {
        self.notified = notified
        self.failures = failures
    }

    /// The first ping falls anywhere in its interval, and not later than this.
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
            let news = notified.map { _ in News.recovered }
            notified = nil
            return Step(news: news, dueAt: due(after: intervalSeconds, at: now, chance))
        case .failed(let failure, _):
            failures = failure == .tokenLost ? 0 : min(failures + 1, Self.mostFailures)
            if case .impossible = result { failures = Self.mostFailures }
            let news = notified == failure ? nil : News.pingFailed(failure)
            notified = failure
            let dueAt = due(after: backedOff(intervalSeconds), at: now, chance)
            let wait = result.wait.map { now.adding(seconds: $0.components.seconds) }
            return Step(news: news, dueAt: wait.map { max($0, dueAt) } ?? dueAt)
        case .none:
            let span = UInt64(min(Self.makeUpSeconds, intervalSeconds)) * 1000
            return Step(news: nil, dueAt: now.adding(milliseconds: Int64(chance % span) + 500))
        }
    }

    private func backedOff(_ seconds: Int) -> Int {
        guard failures > 2 else { return seconds }
        return max(seconds, min(seconds << min(failures - 2, 12), Self.backOffSeconds))
    }

    /// The interval, give or take a tenth, so that what once fell together does not stay together.
    private func due(after seconds: Int, at now: Timestamp, _ chance: UInt64) -> Timestamp {
        let interval = Int64(seconds) * 1000
        return now.adding(milliseconds: interval - interval / 10 + Int64(chance % UInt64(interval / 5 + 1)))
    }
}

/// What a call says of a back end that was pinged.
package enum PingVerdict: Equatable, Sendable {
    case well
    case failed(PingFailure, detail: String)
    /// Nothing: the call could not be made.
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
