import CarillonBasics

/// When a push is sent again.
///
/// What the service has certainly not processed (a refused stream, a stream above the last of a GOAWAY, a push that never
/// left) is always sent again, without asking the policy, until its deadline.
public struct APNsRetryPolicy: Sendable {
    /// What is known of a push when the policy is asked.
    public struct Attempt: Sendable {
        /// How often the push was answered, this answer included: 1 at the first.
        public let number: Int
        /// The refusal.
        public let rejection: APNsRejection

        /// Makes an attempt, for the tests of a policy.
        public init(number: Int, rejection: APNsRejection) {
            self.number = number
            self.rejection = rejection
        }
    }

    /// The most time that one push spends waiting to be sent again. A wait that would not fit is not begun, and the
    /// rejection is the answer.
    public var patience: Duration

    /// How often a push is sent again whose fate is unknown because its connection broke. Each such push carries the same
    /// `apns-id` every time, and a device can still show it twice. 0 by default. A push that was not answered in time is
    /// over, and requests that make or delete a channel are never sent again.
    public var resendsOfUnknownFate: Int

    /// Whether and after which time to send again; nil to take the answer as final. It is called before jitter of up to a
    /// tenth is added.
    public var delay: @Sendable (Attempt) -> Duration?

    /// A policy of one's own.
    public init(
        patience: Duration, resendsOfUnknownFate: Int = 0, delay: @escaping @Sendable (Attempt) -> Duration?
    ) {
        self.patience = patience
        self.resendsOfUnknownFate = resendsOfUnknownFate
        self.delay = delay
    }

    /// Apple's rules, with up to 30 seconds of waiting: too many requests are sent again after 1, 2, 4, 8 seconds; trouble
    /// of the service would wait for 15 minutes, which does not fit, and is the answer.
    public static let standard = APNsRetryPolicy(patience: .seconds(30), delay: recommendedDelay)

    /// Apple's rules in full: trouble of the service is waited out, for up to two hours.
    public static let patient = APNsRetryPolicy(patience: .seconds(7200), delay: recommendedDelay)

    /// Every rejection is the answer.
    public static let never = APNsRetryPolicy(patience: .zero) { _ in nil }

    /// What Apple asks of a provider: after 429 a growing delay, after 5xx at least 15 minutes, doubled each time, never
    /// after what will not change. A `retry-after` of the service comes first, and is at least a second.
    public static let recommendedDelay: @Sendable (Attempt) -> Duration? = { attempt in
        let rejection = attempt.rejection
        let doublings = attempt.number - 1
        switch rejection.kind {
        // The push was sent again already, on a fresh connection, and all pushes share the provider token.
        case .slowDown where rejection.reason == .tooManyProviderTokenUpdates: return nil
        case .slowDown: return max(rejection.retryAfter ?? slowDownDelay.delay(doublings: doublings), .seconds(1))
        case .tryLater: return max(rejection.retryAfter ?? tryLaterDelay.delay(doublings: doublings), .seconds(1))
        case .deadToken, .fixRequest, .fixCredentials, .unknown: return nil
        }
    }

    private static let slowDownDelay = BackOff<Duration>(first: .seconds(1), longest: .seconds(64))
    private static let tryLaterDelay = BackOff<Duration>(first: .seconds(900), longest: .seconds(57_600))
}
