import CarillonBasics
package import CarillonWire

/// Decides whether pushes of a push queue can be sent, and how many at the same time.
///
/// - *open*: the window is the number of pushes that can be under way. A missing answer halves the window, down to one; an answer
///   widens the window.
/// - *paused*: the service cannot be reached, or refuses the push credentials. After the pause, one push is sent as a probe. An
///   answer to the probe opens the push queue. A push that fails for this reason does not use up an attempt.
///
/// New push credentials open the push queue. The pause grows from one second to a minute if the service cannot be reached. It is
/// a minute if the push credentials are refused.
///
/// If ``unknownAnswersInARow`` pushes in a row have an unknown answer, the push queue is paused as if the service could not be
/// reached. A push that always has an unknown answer counts once, so that it does not pause the other pushes.
package struct GatewayBreaker: Equatable, Sendable {
    package struct Fault: Equatable, Sendable {
        package var reason: String
        package var areCredentialsRefused: Bool
        package var since: Timestamp
    }

    package static let widest = 1000
    package static let probeSeconds: Int64 = 60
    private static let backOffSeconds = BackOff(first: 1, longest: probeSeconds)
    package static let unknownAnswersInARow = 10

    package private(set) var underWay = 0
    package private(set) var window = GatewayBreaker.widest
    /// The reason of the pause; nil if the push queue is open.
    package private(set) var fault: Fault?
    private var pausedUntil = Timestamp(milliseconds: 0)
    private var failures = 0
    /// The pushes with an unknown answer since the last answer of the service.
    private var unknown: [Bytes16] = []

    package init() {}

    /// Returns the number of pushes that can begin now.
    package func room(at now: Timestamp) -> Int {
        guard fault != nil else { return max(0, window - underWay) }
        // A clock that was set back delays nothing for longer than a pause.
        let isOver = now >= pausedUntil || now.adding(seconds: Self.probeSeconds) < pausedUntil
        return isOver && underWay == 0 ? 1 : 0
    }

    package mutating func began(_ count: Int) { underWay += count }

    /// Notes the end of a push. Returns whether the end opened or paused the push queue.
    ///
    /// - Parameters:
    ///   - answer: Nil if the answer does not concern the present push credentials.
    ///   - push: The push that ended.
    @discardableResult
    package mutating func ended(_ answer: PushAnswer?, of push: Bytes16, at now: Timestamp) -> Bool {
        underWay -= 1
        switch answer {
        case nil, .notSent:
            return false
        case .taken, .tokenDead, .tokenUnknownHere, .tokenOfAnotherApp, .wrong, .later:
            window = min(Self.widest, window + max(1, window / 8))
            failures = 0
            unknown = []
            pausedUntil = Timestamp(milliseconds: 0)
            defer { fault = nil }
            return fault != nil
        case .unanswered:
            window = max(1, window / 2)
            return false
        case .unreachable(let reason):
            return pauseAsUnreachable(reason, at: now)
        case .unknown(_, let description):
            if !unknown.contains(push), unknown.count < Self.unknownAnswersInARow { unknown.append(push) }
            guard fault != nil || unknown.count == Self.unknownAnswersInARow else { return false }
            return pauseAsUnreachable(description, at: now)
        case .credentialsRefused(let reason):
            unknown = []
            return pause(reason, areCredentialsRefused: true, for: Self.probeSeconds, at: now)
        }
    }

    /// Notes that the push credentials were replaced.
    package mutating func renewed() {
        fault = nil
        failures = 0
        unknown = []
        window = Self.widest
    }

    private mutating func pauseAsUnreachable(_ reason: String, at now: Timestamp) -> Bool {
        pause(reason, areCredentialsRefused: false, for: Self.backOffSeconds.delay(doublings: failures), at: now)
    }

    private mutating func pause(
        _ reason: String, areCredentialsRefused: Bool, for seconds: Int64, at now: Timestamp
    ) -> Bool {
        // Pushes that were under way at the start of the pause report the same fault.
        if fault != nil, now < pausedUntil { return false }
        failures += 1
        pausedUntil = now.adding(seconds: seconds)
        let wasOpen = fault == nil
        fault = Fault(reason: reason, areCredentialsRefused: areCredentialsRefused, since: fault?.since ?? now)
        return wasOpen
    }
}
