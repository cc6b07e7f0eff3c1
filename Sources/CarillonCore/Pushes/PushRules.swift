import CarillonBasics

/// What became of a push that was sent, in the words of no vendor.
package enum PushAnswer: Equatable, Sendable {
    case taken
    /// The token leads nowhere, as far as the service knows since a moment.
    case tokenDead(reason: String, since: Timestamp?)
    /// The token is not one of this environment, or leads nowhere.
    case tokenUnknownHere(reason: String)
    /// The token is not one of the app's.
    case tokenOfAnotherApp(reason: String)
    /// The same push would be refused again.
    case wrong(reason: String)
    /// It is the credentials' fault: all pushes of the push queue would be refused.
    case credentialsRefused(reason: String)
    /// The service wants it later.
    case later(reason: String, seconds: Int64)
    /// The service cannot be reached; it has not had the push.
    case unreachable(reason: String)
    /// There is no answer, and the service may have had the push.
    case unanswered(reason: String)
    /// The answer is not the service's, or nobody knows what it means. It says nothing about the token or the push.
    ///
    /// - `description`: the answer in a form that an operator can recognize.
    case unknown(reason: String, description: String)
    /// It was not sent, as the server stops.
    case notSent
}

/// What follows for the push.
package enum PushVerdict: Equatable, Sendable {
    case handed
    /// It is tried again. `isSpent`: the attempt counts.
    case again(at: Timestamp, isSpent: Bool, reason: String)
    /// It is tried in the other environment, once.
    case elsewhere
    /// The device is suspended, unless it has another token since, or said later that it is its own.
    case tokenDead(reason: String, since: Timestamp?)
    /// - `isOfAddress`: another address of the device corrects it.
    case parked(reason: String, isOfAddress: Bool = false)
}

/// Decides what follows from an answer.
package enum PushRules {
    /// - Parameters:
    ///   - hasOther: Whether the app has credentials for the other environment.
    ///   - spread: Any number that differs from push to push, so that those that failed together do not come back together.
    package static func verdict(
        on answer: PushAnswer, attempt: Int, isElsewhere: Bool, hasOther: Bool, spread: UInt64, at now: Timestamp
    ) -> PushVerdict {
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

    /// And up to a quarter more.
    private static func later(_ seconds: Int64, _ spread: UInt64, than now: Timestamp) -> Timestamp {
        Timestamp(milliseconds: now.milliseconds + seconds * 1000 + seconds * 250 * Int64(spread % 1024) / 1024)
    }

    private static let unansweredSeconds = BackOff<Int64>(first: 30, longest: 960)
    private static let unknownSeconds = BackOff<Int64>(first: 30, longest: 900)
    /// When a token is said to be dead since before the device confirmed it: the vendor may learn better.
    package static let staleSeconds: Int64 = 900
}

/// What a push that is over says of its push queue.
package enum BreakerSignal: Equatable, Sendable {
    case well
    /// Says nothing of it.
    case nothing
    /// No answer came.
    case silent
    /// An answer came that is not the service's.
    case unknown(description: String)
    case unreachable(reason: String)
    case credentialsRefused(reason: String)

    package init(_ answer: PushAnswer) {
        switch answer {
        case .taken, .tokenDead, .tokenUnknownHere, .tokenOfAnotherApp, .wrong, .later: self = .well
        case .notSent: self = .nothing
        case .unanswered: self = .silent
        case .unknown(_, let description): self = .unknown(description: description)
        case .unreachable(let reason): self = .unreachable(reason: reason)
        case .credentialsRefused(let reason): self = .credentialsRefused(reason: reason)
        }
    }
}
