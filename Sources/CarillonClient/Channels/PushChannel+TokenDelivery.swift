extension PushChannel {
    /// Gives the channel's address to the app's backend.
    public typealias TokenDeliverer = @Sendable (PushChannelAddress) async throws -> Void

    /// Whether the channel is open and its present token was given to the backend, as far as is known here.
    public var isTokenDelivered: Bool {
        let machine = runner.channel(identifier)
        return machine.state == .open && !machine.isTokenDue
    }

    /// Says how the app's backend is given the channel's token; set it once, before or after `connect`.
    ///
    /// While the client runs, it is called when the channel has opened, when the backend said that it lost the token
    /// (``PushChannelEvent/PingFailure/tokenLost``), and at the start when neither was done in an earlier run. That it
    /// is due is durable. When it throws, it is called again after the waits of the client's back-off, until it returns
    /// or the token is dead; never twice at once. It is kept, with all that it holds, until another is set, or nil; and
    /// is not cancelled when the client stops.
    public func setTokenDelivery(_ deliver: TokenDeliverer?) {
        runner.setTokenDelivery(deliver, of: identifier)
    }
}
