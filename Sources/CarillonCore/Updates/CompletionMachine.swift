import CarillonBasics

/// The state of an update at one device.
///
/// - *waiting*: the update is in the device's inbox, or waits for an earlier update with the same order key (`attempt` is then
///   0).
/// - *stored*: the device received the update. Without a report for a day it is sent again.
/// - *deferred*: the device cannot process the update now, and reported a delay or a reason. This never counts as a failure.
/// - *failed*: the update is sent again: at once after the first failure, then after 30 seconds, and after twice as long each
///   time, up to six hours.
/// - *parked*: the update failed ten times, for seven days, or permanently. It is not sent again until it is requeued.
/// - *final*: all other states. Three of them can be left: *unsupported* when the device's kinds change, *gone* when the device
///   returns to the audience, and *superseded* when the content into which the update was coalesced ends without effect.
package struct CompletionMachine: Equatable, Sendable {
    package enum State: Int, CaseIterable, Sendable {
        case waiting = 0
        case stored = 1
        case deferred = 2
        case failed = 3
        case parked = 4
        case done = 10
        /// The device does not process the kind.
        case unsupported = 11
        case superseded = 12
        case expired = 13
        case withdrawn = 14
        /// The user signed out, or the device left the audience before the update was processed.
        case gone = 15

        package var isFinal: Bool { rawValue >= State.done.rawValue }

        package var name: String { "\(self)" }
    }

    package private(set) var state: State
    /// The number of times that the update was sent; 0 before the first.
    package private(set) var attempt: Int
    /// Whether the device received the update at least once.
    package private(set) var isReceived: Bool
    package private(set) var failures: Int
    package private(set) var firstFailedAt: Timestamp?
    /// When the update must be sent again.
    package private(set) var dueAt: Timestamp?
    /// The reason of the last report.
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
    /// The delay of an update for which the inbox has no room.
    package static let fullSeconds: Int64 = 60
    private static let backOffSeconds = BackOff<Int64>(first: 30, longest: 6 * 3600)

    /// Whether the update is in the device's inbox.
    package var isInInbox: Bool { state == .waiting && attempt > 0 && dueAt == nil }

    /// Whether later updates with the same order key wait for this one.
    package var blocksOthers: Bool { !state.isFinal && state != .parked }

    /// Notes that the update was put into the device's inbox.
    package mutating func offered() {
        state = .waiting
        attempt += 1
        dueAt = nil
    }

    /// Notes that no earlier update with the same order key is unfinished.
    package mutating func released(at now: Timestamp) {
        if state == .waiting, attempt == 0 { dueAt = now }
    }

    /// Notes that the device received the update from its inbox.
    package mutating func received(at now: Timestamp) {
        guard state == .waiting else { return }
        isReceived = true
        state = .stored
        dueAt = now.adding(seconds: Self.silenceSeconds)
    }

    /// Notes that the update was removed from the inbox. Unless it ends, it is sent again.
    package mutating func takenOut(at now: Timestamp) {
        if isInInbox { dueAt = now }
    }

    /// Applies a result that the device reported. Returns false if the result changes nothing: the update ended before, or was
    /// sent again since.
    ///
    /// - Parameter reported: The attempt that the result is of; nil for the last.
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
            // A failure that is reported again, because the answer was lost, counts once.
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

    /// Returns the seconds until an update is sent again after a number of failures.
    package static func delay(_ failures: Int) -> Int64 {
        failures > 1 ? backOffSeconds.delay(doublings: failures - 2) : 0
    }

    /// Returns the longest time for which a completion in a state waits until it is sent again.
    package static func longestWaitSeconds(in state: State) -> Int64 {
        switch state {
        case .waiting: fullSeconds
        case .stored: silenceSeconds
        case .failed: backOffSeconds.longest
        default: mostDelaySeconds
        }
    }

    /// Makes the update due now: the device lost its data, its kinds changed, or its inbox had no room before.
    package mutating func due(at now: Timestamp) {
        guard !isInInbox, !state.isFinal || state == .unsupported, state != .parked else { return }
        if state == .unsupported { state = .waiting }
        dueAt = now
    }

    /// Requeues a parked update on request. Returns false if the update is not parked.
    package mutating func requeued(at now: Timestamp) -> Bool {
        guard state == .parked else { return false }
        state = .failed
        failures = 0
        firstFailedAt = nil
        dueAt = now
        return true
    }

    /// Ends the update without a result. Returns false if it had ended before.
    package mutating func ended(as end: State) -> Bool {
        guard !state.isFinal else { return false }
        finish(end)
        return true
    }

    /// Whether the update waits and the device never received it.
    package var isUnreceived: Bool { state == .waiting && !isReceived }

    /// Whether the device has or had the update. An update of a kind that the device does not process is not counted.
    package var mayBeKnown: Bool { isReceived && state != .unsupported }

    /// Notes that the device left the audience. Returns whether the completion must be forgotten, because the device never
    /// received the update.
    ///
    /// The device may finish an update that it received. An update that must be sent again ends until the device returns.
    package mutating func leftAudience(at now: Timestamp) -> Bool {
        guard mayBeKnown else { return true }
        if !state.isFinal, isInInbox || dueAt.map({ $0 <= now }) ?? false { finish(.gone) }
        return false
    }

    /// Notes that the device belongs to the audience again.
    package mutating func returned(at now: Timestamp) {
        guard state == .gone else { return }
        state = .waiting
        dueAt = now
    }

    /// Coalesces the update into later content. Returns false if the device received the update; the device then detects the
    /// replacement itself.
    package mutating func coalesced() -> Bool {
        guard isUnreceived else { return false }
        finish(.superseded)
        reason = "absorbed"
        return true
    }

    /// Resets a coalesced update because the later content ended without effect.
    package mutating func revived() { self = CompletionMachine() }

    private mutating func finish(_ end: State) {
        state = end
        dueAt = nil
    }
}

/// The result of an update at a device.
package enum UpdateResult: Equatable, Sendable {
    case done
    /// The device processed the update, and reports a problem.
    case doneWith(reason: String)
    /// The device cannot process the update now: for a number of seconds, or until an event at the device.
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
