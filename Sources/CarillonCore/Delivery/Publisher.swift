package import CarillonWire
import Crypto
import Metrics

/// Takes messages for channel tokens, and answers when each is accepted: on disk, or acknowledged by the app.
package struct Publisher: Sendable {
    package typealias Reply = @Sendable (Result<PublishReceipt, any Error>) -> Void

    private let sealer: TokenSealer
    private let directory: ChannelDirectory
    private let inbox: Inbox
    private let sessions: LiveSessions
    private let allowances: Allowances
    private let audience: String
    private let time: TimeSource

    private let accepted = Counter(label: "carillon_messages_accepted")
    private let dropped = Counter(label: "carillon_messages_dropped")
    private let refusedFull = Counter(label: "carillon_messages_refused_full")

    /// - Parameter audience: The origin of the endpoints, which a VAPID token must name.
    package init(
        sealer: TokenSealer, directory: ChannelDirectory, inbox: Inbox, sessions: LiveSessions, allowances: Allowances,
        audience: String, time: TimeSource
    ) {
        self.sealer = sealer
        self.directory = directory
        self.inbox = inbox
        self.sessions = sessions
        self.allowances = allowances
        self.audience = audience
        self.time = time
    }

    /// The open channel that a token leads to.
    package func channel(of token: String) async throws -> PushChannel {
        let contents = try contents(of: token)
        guard let channel = try await directory.channel(contents.channel), channel.device == contents.device else {
            throw Self.channelGone
        }
        return channel
    }

    /// The same, when the store need not be asked; nil when it must.
    package func rememberedChannel(of token: some StringProtocol) throws(Refusal) -> PushChannel? {
        let contents = try contents(of: token)
        guard let channel = directory.remembered(contents.channel), channel.device == contents.device else { return nil }
        return channel
    }

    private func contents(of token: some StringProtocol) throws(Refusal) -> TokenSealer.Contents {
        guard let contents = sealer.open(token) else {
            throw Refusal(.tokenUnknown, "The last part of the address is not a channel token of this server.")
        }
        return contents
    }

    package func publish(_ request: PublishRequest, to channel: PushChannel) async throws -> PublishReceipt {
        try await withCheckedThrowingContinuation { continuation in
            publish(request, to: channel) { continuation.resume(with: $0) }
        }
    }

    /// Takes a message, and says when it is accepted, or why not. What says so may be called before this returns, and
    /// from any thread.
    package func publish(_ request: PublishRequest, to channel: PushChannel, then: @escaping Reply) {
        do {
            try authorize(request.vapid, for: channel)
            try allowances.takeMessage(to: channel)
        } catch {
            return then(.failure(error))
        }
        let ttl = min(request.ttl, Limits.ttlSeconds)
        guard ttl == 0 else { return append(request, ttl: ttl, to: channel, then: then) }
        // Ends with the answer, which the device's connection gives at once, or the store.
        Task {
            do {
                then(.success(try await deliverNow(request, to: channel)))
            } catch {
                then(.failure(error))
            }
        }
    }

    /// A restricted channel wants its own key; credentials that were given must be good on any channel
    /// (RFC 8292 section 4.2).
    func authorize(_ vapid: VapidCredentials?, for channel: PushChannel) throws(Refusal) {
        guard let vapid else {
            if channel.vapidKey == nil { return }
            throw Refusal(.vapidMissing, "This channel takes messages of one VAPID key only; sign the request with it.")
        }
        if let key = channel.vapidKey, key != vapid.key {
            throw Refusal(.vapidInvalid, "This channel takes messages of another VAPID key.")
        }
        try vapid.verify(audience: audience, at: time.now())
    }

    private func append(_ request: PublishRequest, ttl: Int64, to channel: PushChannel, then: @escaping Reply) {
        let now = time.now()
        let rules = rules(of: request, ttl: ttl, at: now)
        inbox.append(to: channel.device, rules: rules, isOffered: rules.idempotency == nil) { id in
            envelope(request, id, channel, at: now, expiresAt: now.adding(seconds: ttl))
        } then: { id, written in
            switch written {
            case .settled(let settlement):
                accepted.increment()
                then(.success(PublishReceipt(id: id, ttl: ttl, standing: .final(settlement.outcome))))
            case .result(.stored):
                accepted.increment()
                then(.success(PublishReceipt(id: id, ttl: ttl, standing: .waiting)))
            case .result(let result):
                then(Result { try earlierReceipt(result) })
            case .failed(let fault):
                then(.failure(fault))
            }
        }
    }

    /// TTL 0 (RFC 8030 section 5.2): to the device's connection now, or nowhere. What is written down of it is only
    /// what became of it once it was given; with an `Idempotency-Key` that is done first, as a repetition must find it.
    private func deliverNow(_ request: PublishRequest, to channel: PushChannel) async throws -> PublishReceipt {
        let now = time.now()
        let rules = rules(of: request, ttl: 0, at: now)
        var claimed: MessageID?
        if rules.idempotency != nil {
            let id = inbox.nextID()
            let result = try await inbox.writer.write(.append(trace(id, channel, at: now), rules))
            guard case .stored = result else { return try earlierReceipt(result) }
            claimed = id
        }
        let (id, wasGiven) = await offerNow(request, as: claimed, rules, to: channel, at: now)
        if wasGiven {
            accepted.increment()
            return PublishReceipt(id: id, ttl: 0, standing: .offered)
        }
        dropped.increment()
        if claimed == nil {
            inbox.drop(id)
        } else {
            inbox.settle(id, device: channel.device, .dropped, code: nil)
        }
        return PublishReceipt(id: id, ttl: 0, standing: .final(.dropped))
    }

    private func offerNow(
        _ request: PublishRequest, as claimed: MessageID?, _ rules: AppendRules, to channel: PushChannel,
        at now: Timestamp
    ) async -> (id: MessageID, wasGiven: Bool) {
        await withCheckedContinuation { continuation in
            sessions.appending(to: channel.device) { session in
                let id = claimed ?? inbox.nextID()
                if claimed == nil {
                    _ = inbox.writer.enqueue(.append(trace(id, channel, at: now), rules), urgency: .offered)
                }
                guard let session else { return continuation.resume(returning: (id, false)) }
                let envelope = envelope(request, id, channel, at: now, expiresAt: now)
                session.offerVolatile(envelope) { continuation.resume(returning: (id, $0)) }
            }
        }
    }

    /// A message of TTL 0 as the store keeps it: without its body.
    private func trace(_ id: MessageID, _ channel: PushChannel, at now: Timestamp) -> Envelope {
        envelope(PublishRequest(body: [], coding: nil, ttl: 0), id, channel, at: now, expiresAt: now)
    }

    private func earlierReceipt(_ result: InboxResult) throws -> PublishReceipt {
        switch result {
        case .duplicate(let id, let acceptedAt, let expiresAt, let outcome):
            let ttl = (expiresAt.milliseconds - acceptedAt.milliseconds) / 1000
            return PublishReceipt(id: id, ttl: ttl, standing: outcome.map { .final($0) } ?? (ttl == 0 ? .offered : .waiting))
        case .keyReused:
            throw Refusal(.idempotencyKeyReused, "The Idempotency-Key came before with another body or other headers.")
        case .full:
            refusedFull.increment()
            throw Refusal(
                .inboxFull, "The device's inbox is full until it connects or messages expire.", retryAfterSeconds: 60)
        case .failed(let fault):
            throw fault
        case .originGone, .stored, .recorded, .settled, .notWaiting:
            throw Self.channelGone
        }
    }

    private func envelope(
        _ request: PublishRequest, _ id: MessageID, _ channel: PushChannel, at now: Timestamp, expiresAt: Timestamp
    ) -> Envelope {
        Envelope(
            id: id, device: channel.device, app: channel.app, origin: channel.origin,
            kind: .message(.init(body: request.body, coding: request.coding)), acceptedAt: now, expiresAt: expiresAt)
    }

    private func rules(of request: PublishRequest, ttl: Int64, at now: Timestamp) -> AppendRules {
        AppendRules(
            topic: request.topic,
            idempotency: request.idempotencyKey.map { key in
                IdempotencyClaim(
                    keyHash: Array(SHA256.hash(data: Array(key.utf8))),
                    fingerprint: request.fingerprint,
                    validUntil: now.adding(seconds: 86_400))
            })
    }

    static let channelGone = Refusal(.tokenGone, "The channel was closed; its token will not work again.")
}

extension PublishRequest {
    /// A hash of all that the sender asked for, credentials left out.
    fileprivate var fingerprint: [UInt8] {
        var hash = SHA256()
        for part in [coding?.name.rawValue, coding?.encryption, coding?.cryptoKey, "\(ttl)", urgency.rawValue, topic] {
            hash.update(data: Array((part ?? "").utf8) + [0])
        }
        hash.update(data: body)
        return Array(hash.finalize())
    }
}
