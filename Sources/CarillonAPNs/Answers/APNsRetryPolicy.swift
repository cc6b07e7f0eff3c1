import CarillonBasics

/// The rules by which a push is sent again.
///
/// A push that APNs has certainly not processed is always sent again until its deadline, without a call of the policy. This
/// applies to a refused stream, to a stream above the last stream of a GOAWAY, and to a push that was never sent.
public struct APNsRetryPolicy: Sendable {
    /// The facts about a push for which the policy computes a delay.
    public struct Attempt: Sendable {
        /// How many responses the push has received, including this one: 1 for the first.
        public let number: Int
        /// The rejection of the push.
        public let rejection: APNsRejection

        /// Makes an attempt, for the tests of a policy.
        public init(number: Int, rejection: APNsRejection) {
            self.number = number
            self.rejection = rejection
        }
    }

    /// The longest total time that one push waits to be sent again. A delay that would exceed this time is not started, and
    /// the rejection is returned.
    public var patience: Duration

    /// How often a push is sent again if its connection broke and the outcome is unknown; 0 by default. All attempts carry
    /// the same `apns-id`, but a device can still show the notification twice. A push that timed out is not sent again, and
    /// neither are requests that create or delete a channel.
    public var resendsOfUnknownFate: Int

    /// Returns the delay before the push is sent again, or nil if the rejection is final. The client then adds a random delay
    /// of up to a tenth.
    public var delay: @Sendable (Attempt) -> Duration?

    /// Makes a policy.
    public init(
        patience: Duration, resendsOfUnknownFate: Int = 0, delay: @escaping @Sendable (Attempt) -> Duration?
    ) {
        self.patience = patience
        self.resendsOfUnknownFate = resendsOfUnknownFate
        self.delay = delay
    }

    /// Apple's rules with at most 30 seconds of waiting. A push that was rejected because of too many requests is sent again
    /// after 1, 2, 4 and 8 seconds. After a fault of APNs the delay would be 15 minutes, which exceeds the limit, so the
    /// rejection is returned.
    public static let standard = APNsRetryPolicy(patience: .seconds(30), delay: recommendedDelay)

    /// Apple's rules with at most two hours of waiting, so that a push is also sent again after a fault of APNs.
    public static let patient = APNsRetryPolicy(patience: .seconds(7200), delay: recommendedDelay)

    /// No push is sent again: every rejection is returned.
    public static let never = APNsRetryPolicy(patience: .zero) { _ in nil }

    /// Apple's recommended delays: an increasing delay after 429, and at least 15 minutes, doubled each time, after 5xx. Nil
    /// for rejections that would not change. A `retry-after` of the response has precedence, and is at least one second.
    public static let recommendedDelay: @Sendable (Attempt) -> Duration? = { attempt in
        let rejection = attempt.rejection
        let doublings = attempt.number - 1
        switch rejection.kind {
        // The push was already sent again on a new connection, and all pushes share the provider token.
        case .slowDown where rejection.reason == .tooManyProviderTokenUpdates: return nil
        case .slowDown: return max(rejection.retryAfter ?? slowDownDelay.delay(doublings: doublings), .seconds(1))
        case .tryLater: return max(rejection.retryAfter ?? tryLaterDelay.delay(doublings: doublings), .seconds(1))
        case .deadToken, .fixRequest, .fixCredentials, .unknown: return nil
        }
    }

    private static let slowDownDelay = BackOff<Duration>(first: .seconds(1), longest: .seconds(64))
    private static let tryLaterDelay = BackOff<Duration>(first: .seconds(900), longest: .seconds(57_600))
}
