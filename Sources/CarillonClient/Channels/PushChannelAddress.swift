/// What a backend must have to send to a channel.
public struct PushChannelAddress: Hashable, Sendable {
    /// The token of the channel.
    public let token: String
    /// The URL that messages are posted to; it has the token in it.
    public let endpoint: String
    /// The host of ``endpoint``.
    public let host: String
    /// What messages are encrypted with; nil for a channel that takes them as they come.
    public let subscription: PushSubscription?

    init(_ endpoint: ChannelEndpoint, subscription: PushSubscription?) {
        token = endpoint.token
        self.endpoint = endpoint.text
        host = endpoint.host
        self.subscription = subscription
    }
}
