import CarillonBasics

/// What became of an update at one device: given, kept, put off, processed.
///
/// - *waiting*: it is in the device's inbox, or stands behind an earlier one of its order key (`attempt` is 0 then).
/// - *stored*: the device has it. What is silent for a day is given again.
/// - *deferred*: the device cannot process it now, and said until when, or what it waits for. That never counts as a failure.
/// - *failed*: it is given again: at once after the first failure, then after 30 seconds and twice as long each time, up to six hours.
/// - *parked*: it failed ten times, for seven days, or for good. Nothing comes of it until it is put back by hand.
/// - *final*: the rest.
package struct CompletionMachine: Equatable, Sendable {
    package enum State: Int, CaseIterable, Sendable {
        case waiting = 0
        case stored = 1
        case deferred = 2
        case failed = 3
        case parked = 4
        case done = 10
        /// The device does not know the kind.
        case unsupported = 11
        case superseded = 12
        case expired = 13
        case withdrawn = 14
        /// Its user signed out, or its device left the audience before it was done.
        case gone = 15

        package var isFinal: Bool { rawValue >= State.done.rawValue }

        package var name: String { "\(self)" }
    }

    package private(set) var state: State
    /// How often it was given; 0: never yet.
    package private(set) var attempt: Int
    /// Whether its device received it at least once, however often it was given.
    package private(set) var isReceived: Bool
    package private(set) var failures: Int
    package private(set) var firstFailedAt: Timestamp?
    /// When it is to be given again.
    package private(set) var dueAt: Timestamp?
    /// What the device said last.
    package private(set) var reason: String?

    package init(
        _ state: State = .waiting, attempt: Int = 0, isReceived: Bool = false, failures: Int = 0,
        firstFailedAt: Timestamp? = nil, dueAt: Timestamp? = nil, reason: String? = nil
    ) {
        self.state = state
        self.attempt = attempt
        self.isReceived = isReceived
        self.failures = failures
        self.firstFailedAt = firstFailedAt
        self.dueAt = dueAt
        self.reason = reason
    }

    package static let silenceSeconds: Int64 = 86_400
    package static let mostFailures = 10
    package static let mostFailingSeconds: Int64 = 7 * 86_400
    package static let mostDelaySeconds: Int64 = 30 * 86_400
    /// How long one waits for which the inbox has no room.
    package static let fullSeconds: Int64 = 60
    private static let backOffSeconds = BackOff<Int64>(first: 30, longest: 6 * 3600)

    /// Whether it is in the device's inbox.
    package var isInInbox: Bool { state == .waiting && attempt > 0 && dueAt == nil }

    /// Whether others of its order key stand behind it.
    package var holdsUpOthers: Bool { !state.isFinal && state != .parked }

    /// It was put into the device's inbox.
    package mutating func offered() {
        state = .waiting
        attempt += 1
        dueAt = nil
    }

    /// Another of its order key holds it up no more.
    package mutating func released(at now: Timestamp) {
        if state == .waiting, attempt == 0 { dueAt = now }
    }

    /// The device received what was in its inbox.
    package mutating func received(at now: Timestamp) {
        guard state == .waiting else { return }
        isReceived = true
        state = .stored
        dueAt = now.adding(seconds: Self.silenceSeconds)
    }

    /// It was taken out of the inbox. Unless it comes to an end, it is given again.
    package mutating func takenOut(at now: Timestamp) {
        if isInInbox { dueAt = now }
    }

    /// The device says what it did with it. Answers false for what changes nothing: it came to an end before, or was given again since.
    ///
    /// - Parameter reported: Which time it was given that the device speaks of; nil for the last.
    package mutating func reported(_ result: UpdateResult, of reported: Int? = nil, at now: Timestamp) -> Bool {
        guard !state.isFinal, attempt > 0 else { return false }
        let isOfLast = reported.map { $0 >= attempt } ?? true
        switch result {
        case .done:
            isReceived = true
            finish(.done)
            reason = nil
        case .doneWith(let reason):
            isReceived = true
            finish(.done)
            self.reason = reason
        case .unsupported: finish(.unsupported)
        case .deferred(let seconds, let reason):
            guard state != .parked, isOfLast else { return false }
            isReceived = true
            state = .deferred
            let delay = min(max(1, seconds ?? Self.silenceSeconds), Self.mostDelaySeconds)
            dueAt = now.adding(seconds: delay)
            self.reason = reason
        case .failed(let isPermanent, let reason):
            // One that is said again, as its answer was lost, is one failure.
            guard state != .parked, state != .failed, isOfLast else { return false }
            isReceived = true
            self.reason = reason
            failures += 1
            firstFailedAt = firstFailedAt ?? now
            fail(isPermanent, at: now)
        }
        return true
    }

    private mutating func fail(_ isPermanent: Bool, at now: Timestamp) {
        let began = firstFailedAt ?? now
        if isPermanent || failures >= Self.mostFailures || began.adding(seconds: Self.mostFailingSeconds) <= now {
            state = .parked
            dueAt = nil
        } else {
            state = .failed
            dueAt = now.adding(seconds: Self.delay(failures))
        }
    }

    /// Seconds until it is given again, after so many failures.
    package static func delay(_ failures: Int) -> Int64 {
        failures > 1 ? backOffSeconds.delay(doublings: failures - 2) : 0
    }

    /// The longest time for which a completion waits until it is given again.
    package static func longestWaitSeconds(in state: State) -> Int64 {
        switch state {
        case .waiting: fullSeconds
        case .stored: silenceSeconds
        case .failed: backOffSeconds.longest
        default: mostDelaySeconds
        }
    }

    /// It is to be given again now: the device lost what it had, its kinds changed, or its inbox had no room before.
    package mutating func due(at now: Timestamp) {
        guard !isInInbox, !state.isFinal || state == .unsupported, state != .parked else { return }
        if state == .unsupported { state = .waiting }
        dueAt = now
    }

    /// Somebody put it back who had seen that it was parked. Answers false where it is not.
    package mutating func requeued(at now: Timestamp) -> Bool {
        guard state == .parked else { return false }
        state = .failed
        failures = 0
        firstFailedAt = nil
        dueAt = now
        return true
    }

    /// It comes to an end, and nobody processed it. Answers false where it had come to one.
    package mutating func ended(as end: State) -> Bool {
        guard !state.isFinal else { return false }
        finish(end)
        return true
    }

    /// Whether it waits, and its device never received it.
    package var isUnreceived: Bool { state == .waiting && !isReceived }

    /// Whether its device has it, or had it. A device that does not know the kind has nothing.
    package var mayBeKnown: Bool { isReceived && state != .unsupported }

    /// Its device left the audience. Answers whether the completion is to be forgotten, as the device never received the update.
    ///
    /// What the device has it may finish. What is to be given again ends until the device returns.
    package mutating func left(at now: Timestamp) -> Bool {
        guard mayBeKnown else { return true }
        if !state.isFinal, isInInbox || dueAt.map({ $0 <= now }) ?? false { finish(.gone) }
        return false
    }

    /// Its device belongs to the audience again.
    package mutating func returned(at now: Timestamp) {
        guard state == .gone else { return }
        state = .waiting
        dueAt = now
    }

    /// A later change of content stands for it. Answers false where the device has it, which sees that by itself.
    package mutating func coalesced() -> Bool {
        guard isUnreceived else { return false }
        finish(.superseded)
        reason = "absorbed"
        return true
    }

    /// What stood for it came to nothing.
    package mutating func revived() { self = CompletionMachine() }

    private mutating func finish(_ end: State) {
        state = end
        dueAt = nil
    }
}

/// What a device did with an update.
package enum UpdateResult: Equatable, Sendable {
    case done
    /// Done, and not everything was as it should be.
    case doneWith(reason: String)
    /// It cannot be processed now: for so many seconds, or until something happens at the device.
    case deferred(seconds: Int64?, reason: String?)
    case failed(isPermanent: Bool, reason: String?)
    case unsupported

    var name: String {
        switch self {
        case .done, .doneWith: "done"
        case .deferred: "deferred"
        case .failed: "failed"
        case .unsupported: "unsupported"
        }
    }
}
