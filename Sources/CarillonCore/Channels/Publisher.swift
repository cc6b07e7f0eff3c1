package import CarillonWire
import Crypto
import Metrics

/// Accepts messages for channel tokens, and replies when each message is on disk or acknowledged by the app.
package final class Publisher: Sendable {
    package typealias Reply = @Sendable (Result<PublishReceipt, any Error>) -> Void

    private let sealer: TokenSealer
    private let directory: ChannelDirectory
    private let home: any LocalHome
    private let rateLimits: RateLimits
    private let vapid: VerifiedVapidTokens
    private let time: TimeSource

    private let accepted = ServerMetric.messages.counter("accepted")
    private let dropped = ServerMetric.messages.counter("dropped")
    private let repeated = ServerMetric.messages.counter("repeated")

    /// - Parameter addresses: The addresses of the endpoints. A VAPID token must name the origin of one of them.
    package init(
        sealer: TokenSealer, directory: ChannelDirectory, home: any LocalHome, rateLimits: RateLimits,
        addresses: PublicURLs, time: TimeSource
    ) {
        self.sealer = sealer
        self.directory = directory
        self.home = home
        self.rateLimits = rateLimits
        vapid = VerifiedVapidTokens(addresses: addresses)
        self.time = time
    }

    /// Returns the open channel of a token.
    ///
    /// - Throws: ``HomeFault/moved(to:)`` if another home has the device of the channel.
    package func channel(of token: String) async throws -> PushChannel {
        let contents = try contents(of: token)
        try home.checkHas(contents.device)
        guard let channel = try await directory.channel(contents.channel), channel.device == contents.device else {
            throw Self.channelGone
        }
        return channel
    }

    /// Returns the open channel of a token if it is cached; nil if the store must be read.
    package func rememberedChannel(of token: some StringProtocol) throws(Refusal) -> PushChannel? {
        let contents = try contents(of: token)
        guard let channel = directory.remembered(contents.channel), channel.device == contents.device else { return nil }
        return channel
    }

    private func contents(of token: some StringProtocol) throws(Refusal) -> TokenSealer.Contents {
        guard let contents = sealer.open(token) else {
            throw Refusal(
                .tokenUnknown,
                "The last part of the URL is not a channel token of this server; use the endpoint that the app sent.")
        }
        return contents
    }

    package func publish(_ request: PublishRequest, to channel: PushChannel) async throws -> PublishReceipt {
        try await withCheckedThrowingContinuation { continuation in
            publish(request, to: channel) { continuation.resume(with: $0) }
        }
    }

    /// Publishes a message, and replies when the message is accepted, or with the reason for its rejection. The reply may be
    /// called before this method returns, and from any thread.
    package func publish(_ request: PublishRequest, to channel: PushChannel, then: @escaping Reply) {
        do {
            try admitMessage(to: channel, by: request.vapid)
        } catch {
            return then(.failure(error))
        }
        let ttl = min(request.ttl, Limits.ttlSeconds)
        let now = time.now()
        var rules = rules(of: request, at: now)
        let wake = request.urgency.wake(on: channel.wake)
        if ttl > 0, wake != .none { rules.wake = WakeRequest(wake, dueAt: now) }
        let mode: DeliveryMode = ttl == 0 ? .now : rules.idempotency == nil ? .keptAndOffered : .kept
        home.deliver(to: channel.device, mode, rules: rules) { id in
            Envelope(
                id: id, device: channel.device, app: channel.app, origin: channel.origin,
                kind: .message(.init(body: request.body, coding: request.coding)), acceptedAt: now,
                expiresAt: now.adding(seconds: ttl), urgency: request.urgency)
        } then: { [self] id, delivered in
            then(Result { try receipt(id, ttl: ttl, delivered) })
        }
    }

    /// Counts a message towards the rate limits of its channel, also if the message is dropped later.
    package func admitMessage(to channel: PushChannel, by credentials: VapidCredentials?) throws(Refusal) {
        try authorize(credentials, for: channel)
        try rateLimits.takeMessage(to: channel.serial, of: channel.device, in: channel.app)
    }

    /// Checks the VAPID credentials of a request. A restricted channel requires its own key. Credentials that are present must be
    /// valid on any channel (RFC 8292 section 4.2).
    func authorize(_ credentials: VapidCredentials?, for channel: PushChannel) throws(Refusal) {
        guard let credentials else {
            if channel.vapidKey == nil { return }
            throw Refusal(
                .vapidMissing,
                "This channel accepts only messages that are signed with its VAPID key; sign the request with that key.")
        }
        if let key = channel.vapidKey, key != credentials.key {
            throw Refusal(.vapidInvalid, "This channel accepts only messages that are signed with another VAPID key.")
        }
        try vapid.verify(credentials, at: time.now())
    }

    private func receipt(_ id: MessageID, ttl: Int64, _ result: InboxResult) throws -> PublishReceipt {
        var receipt = PublishReceipt(id: id, ttl: ttl, outcome: nil)
        switch result {
        case .stored, .sent: accepted.increment()
        case .answered(let finalOutcome):
            accepted.increment()
            receipt.outcome = finalOutcome.outcome
        case .dropped:
            dropped.increment()
            receipt.outcome = .dropped
        case .duplicate(let earlier, let acceptedAt, let expiresAt, let outcome):
            repeated.increment()
            let ttl = (expiresAt.milliseconds - acceptedAt.milliseconds) / 1000
            receipt = PublishReceipt(id: earlier, ttl: ttl, outcome: outcome)
        case .keyReused:
            throw Refusal(
                .idempotencyKeyReused,
                "The \"Idempotency-Key\" was used for a message with another body or other headers; use a new key.")
        case .full:
            throw Refusal(
                .inboxFull, "The device's inbox is full. Retry after the device has connected or messages have expired.",
                retryAfterSeconds: 60)
        case .failed(let fault): throw fault
        case .originGone, .quotaFull, .recorded, .finished, .notWaiting: throw Self.channelGone
        }
        return receipt
    }

    private func rules(of request: PublishRequest, at now: Timestamp) -> AppendRules {
        AppendRules(
            topic: request.topic,
            idempotency: request.idempotencyKey.map { key in
                IdempotencyClaim(
                    keyHash: Array(SHA256.hash(data: Array(key.utf8))),
                    fingerprint: request.fingerprint,
                    validUntil: now.adding(seconds: IdempotencyClaim.keptSeconds))
            })
    }

    static let channelGone = Refusal(.tokenGone, "The channel was closed; delete its token, which stays invalid.")
}

extension PublishRequest {
    /// A hash of the complete request without credentials.
    fileprivate var fingerprint: [UInt8] {
        var hash = SHA256()
        for part in [coding?.name.rawValue, coding?.encryption, coding?.cryptoKey, "\(ttl)", urgency.rawValue, topic] {
            hash.update(data: Array((part ?? "").utf8) + [0])
        }
        hash.update(data: body)
        return Array(hash.finalize())
    }
}
