/// The provider token that a connection carries, and the time since which it carries it.
///
/// APNs rejects a second token on a connection within 20 minutes of the first push with the previous token
/// (`TooManyProviderTokenUpdates`). Until this time is over, another token needs a new connection.
struct TokenHistory: Sendable {
    /// Half a minute more than APNs requires, because two pushes do not take the same time to reach APNs.
    static let leastUse = Duration.seconds(20 * 60 + 30)

    private var newest: (token: ProviderToken, since: Moment)?
    /// The newest token that a response on the connection showed to be accepted.
    private var taken: ProviderToken?

    /// Whether a push with the token may be sent on the connection now.
    func mayCarry(_ token: ProviderToken, _ now: Moment) -> Bool {
        guard let newest, newest.token !== token else { return true }
        return !token.isForFreshConnections && now - newest.since >= Self.leastUse
    }

    /// Whether APNs accepted the token on the connection.
    func isTaken(_ token: ProviderToken) -> Bool { taken === token }

    /// A response showed that APNs accepts the token.
    mutating func wasTaken(_ token: ProviderToken) { taken = token }

    /// A push with the token was sent on the connection.
    mutating func carried(_ token: ProviderToken, _ now: Moment) {
        if newest?.token !== token { newest = (token, now) }
    }
}
