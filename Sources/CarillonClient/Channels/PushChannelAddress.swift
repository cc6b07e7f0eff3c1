/// The address with which a backend sends to a channel.
public struct PushChannelAddress: Hashable, Sendable {
    /// The token of the channel.
    public let token: String
    /// The URL to which messages are posted. It contains the token.
    public let endpoint: String
    /// The host of ``endpoint``.
    public let host: String
    /// The endpoint and keys with which messages are encrypted; nil if the channel is not encrypted.
    public let subscription: PushSubscription?

    init(_ endpoint: ChannelEndpoint, subscription: PushSubscription?) {
        token = endpoint.token
        self.endpoint = endpoint.text
        host = endpoint.host
        self.subscription = subscription
    }
}
