/// Which provider token a connection carries, and since when.
///
/// The service refuses a second token on a connection within 20 minutes of the first push with the one before
/// (`TooManyProviderTokenUpdates`). A token for which that time is not over needs a fresh connection.
struct TokenHistory: Sendable {
    /// Half a minute more than the service asks for, since two pushes do not take equally long to the service.
    static let leastUse = Duration.seconds(20 * 60 + 30)

    private var newest: (token: ProviderToken, since: Moment)?
    /// The newest token that an answer on the connection showed to be good.
    private var taken: ProviderToken?

    /// Whether a push with the token may be sent on the connection now.
    func mayCarry(_ token: ProviderToken, _ now: Moment) -> Bool {
        guard let newest, newest.token !== token else { return true }
        return !token.isForFreshConnections && now - newest.since >= Self.leastUse
    }

    /// Whether the service took the token on the connection.
    func isTaken(_ token: ProviderToken) -> Bool { taken === token }

    /// An answer showed that the service takes the token.
    mutating func wasTaken(_ token: ProviderToken) { taken = token }

    /// A push with the token was given to the connection.
    mutating func carried(_ token: ProviderToken, _ now: Moment) {
        if newest?.token !== token { newest = (token, now) }
    }
}
