extension PushChannel {
    /// Sends the channel's address to the app's backend.
    public typealias TokenDeliverer = @Sendable (PushChannelAddress) async throws -> Void

    /// Whether the channel is open and its present token was delivered to the backend, as far as the client can determine.
    public var isTokenDelivered: Bool {
        let machine = runner.channel(identifier)
        return machine.state == .open && !machine.isTokenDue
    }

    /// Sets the closure that delivers the channel's token to the app's backend. Set it once, before or after `connect`.
    ///
    /// While the client runs, it calls the closure when the channel has opened, when the backend reported that it lost the token
    /// (``PushChannelEvent/PingFailure/tokenLost``), when the channel's endpoint changed, and at the start if a delivery of an
    /// earlier run is pending. A pending delivery is stored durably. If the closure throws, the client calls it again after the
    /// waits of its back-off, until the closure returns or the token is invalid. Two calls never run at once. The client keeps
    /// the closure, with all that it captures, until another one or nil is set. A call is not cancelled when the client stops.
    public func setTokenDelivery(_ deliver: TokenDeliverer?) {
        runner.setTokenDelivery(deliver, of: identifier)
    }
}
