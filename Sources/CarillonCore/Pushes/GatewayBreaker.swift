import CarillonBasics
package import CarillonWire

/// Whether pushes of a push queue may be sent, and how many at once.
///
/// - *open*: as many as its window are under way. Silence halves the window, down to one; an answer widens it.
/// - *paused*: the service cannot be reached, or refuses the credentials. When the pause is over, one push is sent to see, and
///   opens the push queue when it is answered. What was tried in vain has cost no attempt.
///
/// New credentials open it. The pause after a service that cannot be reached grows from a second to a minute; that after
/// credentials that are refused is a minute.
///
/// Answers that are not the service's pause the push queue as a service that cannot be reached does, when ``strangersInARow`` pushes
/// in a row had such an answer. One push that always has such an answer counts once, so that it does not pause the others.
package struct GatewayBreaker: Equatable, Sendable {
    package struct Fault: Equatable, Sendable {
        package var reason: String
        package var areCredentialsRefused: Bool
        package var since: Timestamp
    }

    package static let widest = 1000
    package static let probeSeconds: Int64 = 60
    private static let backOffSeconds = BackOff(first: 1, longest: probeSeconds)
    package static let strangersInARow = 10

    package private(set) var underWay = 0
    package private(set) var window = GatewayBreaker.widest
    /// Nil of a push queue that is open.
    package private(set) var fault: Fault?
    private var pausedUntil = Timestamp(milliseconds: 0)
    private var failures = 0
    /// The pushes whose answers were not the service's, since its last answer.
    private var strange: [Bytes16] = []

    package init() {}

    /// How many pushes may begin now.
    package func room(at now: Timestamp) -> Int {
        guard fault != nil else { return max(0, window - underWay) }
        // A clock that was set back holds nothing up for longer than a pause.
        let isOver = now >= pausedUntil || now.adding(seconds: Self.probeSeconds) < pausedUntil
        return isOver && underWay == 0 ? 1 : 0
    }

    package mutating func began(_ count: Int) { underWay += count }

    /// Answers whether the push queue was opened or paused by it.
    ///
    /// - Parameter push: The push that ended.
    @discardableResult
    package mutating func ended(_ signal: BreakerSignal, of push: Bytes16, at now: Timestamp) -> Bool {
        underWay -= 1
        switch signal {
        case .nothing:
            return false
        case .well:
            window = min(Self.widest, window + max(1, window / 8))
            failures = 0
            strange = []
            pausedUntil = Timestamp(milliseconds: 0)
            defer { fault = nil }
            return fault != nil
        case .silent:
            window = max(1, window / 2)
            return false
        case .unreachable(let reason):
            return pauseAsUnreachable(reason, at: now)
        case .unknown(let description):
            if !strange.contains(push), strange.count < Self.strangersInARow { strange.append(push) }
            guard fault != nil || strange.count == Self.strangersInARow else { return false }
            return pauseAsUnreachable(description, at: now)
        case .credentialsRefused(let reason):
            strange = []
            return pause(reason, areCredentialsRefused: true, for: Self.probeSeconds, at: now)
        }
    }

    /// Its credentials were set anew.
    package mutating func renewed() {
        fault = nil
        failures = 0
        strange = []
        window = Self.widest
    }

    private mutating func pauseAsUnreachable(_ reason: String, at now: Timestamp) -> Bool {
        pause(reason, areCredentialsRefused: false, for: Self.backOffSeconds.delay(doublings: failures), at: now)
    }

    private mutating func pause(
        _ reason: String, areCredentialsRefused: Bool, for seconds: Int64, at now: Timestamp
    ) -> Bool {
        // What was under way when the push queue was paused says it once more.
        if fault != nil, now < pausedUntil { return false }
        failures += 1
        pausedUntil = now.adding(seconds: seconds)
        let wasOpen = fault == nil
        fault = Fault(reason: reason, areCredentialsRefused: areCredentialsRefused, since: fault?.since ?? now)
        return wasOpen
    }
}
