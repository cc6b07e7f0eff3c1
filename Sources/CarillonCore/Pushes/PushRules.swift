import CarillonBasics

/// The result of a push, independent of the vendor.
package enum PushAnswer: Equatable, Sendable {
    case taken
    /// The token belongs to no device. `since`: the time at which the token became invalid, if the service reports one.
    case tokenDead(reason: String, since: Timestamp?)
    /// The token belongs to another environment, or to no device.
    case tokenUnknownHere(reason: String)
    /// The token belongs to another app.
    case tokenOfAnotherApp(reason: String)
    /// The push is invalid. A repetition would be refused too.
    case wrong(reason: String)
    /// The push credentials are refused: all pushes of the push queue would be refused.
    case credentialsRefused(reason: String)
    /// The service requests a later attempt.
    case later(reason: String, seconds: Int64)
    /// The service cannot be reached. It has not received the push.
    case unreachable(reason: String)
    /// There is no answer, and the service may have received the push.
    case unanswered(reason: String)
    /// The answer does not come from the service, or has an unknown meaning. It is no evidence about the token or the push.
    ///
    /// - `description`: the answer in a form that an operator can recognize.
    case unknown(reason: String, description: String)
    /// The push was not sent, because the server is stopping.
    case notSent
}

/// Decides the consequence of an answer.
package enum PushRules {
    /// - Parameters:
    ///   - hasOther: Whether the app has push credentials for the other environment.
    ///   - spread: A number that differs from push to push, so that pushes that failed together are not retried together.
    package static func verdict(
        on answer: PushAnswer, attempt: Int, isElsewhere: Bool, hasOther: Bool, spread: UInt64, at now: Timestamp
    ) -> PushEnd.Verdict {
        switch answer {
        case .taken: return .handed
        case .tokenDead(let reason, let since): return .tokenDead(reason: reason, since: since)
        case .tokenUnknownHere(let reason):
            return hasOther && !isElsewhere ? .elsewhere : .tokenDead(reason: reason, since: nil)
        case .tokenOfAnotherApp(let reason): return .parked(reason: reason, isOfAddress: true)
        case .wrong(let reason): return .parked(reason: reason)
        case .credentialsRefused(let reason), .unreachable(let reason):
            return .again(at: now, isSpent: false, reason: reason)
        case .later(let reason, let seconds):
            return .again(at: later(max(1, seconds), spread, than: now), isSpent: true, reason: reason)
        case .unanswered(let reason):
            let seconds = unansweredSeconds.delay(doublings: attempt - 1)
            return .again(at: later(seconds, spread, than: now), isSpent: true, reason: reason)
        case .unknown(let reason, _):
            let seconds = unknownSeconds.delay(doublings: attempt - 1)
            return .again(at: later(seconds, spread, than: now), isSpent: true, reason: reason)
        case .notSent: return .again(at: now, isSpent: false, reason: "not sent")
        }
    }

    /// Adds up to a quarter to the delay.
    private static func later(_ seconds: Int64, _ spread: UInt64, than now: Timestamp) -> Timestamp {
        Timestamp(milliseconds: now.milliseconds + seconds * 1000 + seconds * 250 * Int64(spread % 1024) / 1024)
    }

    private static let unansweredSeconds = BackOff<Int64>(first: 30, longest: 960)
    private static let unknownSeconds = BackOff<Int64>(first: 30, longest: 900)
    /// The delay of an attempt after a report that the token is dead from before the device confirmed it. The vendor's service
    /// may have a newer state by then.
    package static let staleSeconds: Int64 = 900
}
