import CarillonWire

/// Where the giving of one channel's token to the app's backend stands.
///
/// - *idle*: nothing to do, or the client does not run. Left to *under way* when the token is due.
/// - *under way*: the app's hook has the token. Left to *idle* by its success, to *waiting* by its failure.
/// - *waiting*: it is tried again at a time.
struct TokenDelivery: Sendable {
    enum State: Equatable, Sendable {
        case idle
        case underWay
        case waiting(until: ContinuousClock.Instant)
    }

    /// Whether there is a hook; without one, an earlier hook may still be under way.
    var isSet = true
    var state = State.idle
    var schedule: ClientReconnectSchedule
    /// The backend said that it lost the token while the hook had it: what the hook does may have come too early.
    var mustRepeat = false
}

extension ClientSession {
    /// The app set the hook of a channel, or took it away.
    mutating func tokenDeliverySet(_ identifier: String, isSet: Bool, at now: ContinuousClock.Instant) -> [SessionAction] {
        var delivery =
            channels.tokenDeliveries[identifier] ?? TokenDelivery(schedule: ClientReconnectSchedule(settings.backOff))
        delivery.isSet = isSet
        channels.tokenDeliveries[identifier] = delivery
        return deliverTokens(at: now)
    }

    /// The hook returned.
    mutating func tokenDelivered(
        _ identifier: String, token: String, at now: ContinuousClock.Instant
    ) -> [SessionAction] {
        guard var delivery = channels.tokenDeliveries[identifier] else { return [] }
        let mustRepeat = delivery.mustRepeat
        delivery.state = .idle
        delivery.mustRepeat = false
        delivery.schedule.succeeded()
        channels.tokenDeliveries[identifier] = delivery
        var actions: [SessionAction] = []
        if !mustRepeat, var channel = channels[identifier], channel.tokenDelivered(token) {
            channels[identifier] = channel
            actions.append(.write(.saveChannel(identifier: identifier, channel)))
        }
        return actions + deliverTokens(at: now)
    }

    /// The hook threw.
    mutating func tokenDeliveryFailed(
        _ identifier: String, at now: ContinuousClock.Instant, random: Double
    ) -> [SessionAction] {
        guard var delivery = channels.tokenDeliveries[identifier] else { return [] }
        delivery.state = .waiting(until: now + delivery.schedule.failed(random: random))
        delivery.mustRepeat = false
        channels.tokenDeliveries[identifier] = delivery
        return []
    }

    /// The backend said that it lost the token.
    mutating func tokenLost(_ identifier: String) {
        if channels.tokenDeliveries[identifier]?.state == .underWay {
            channels.tokenDeliveries[identifier]?.mustRepeat = true
        }
    }

    /// Hands over every token that is due, unless it is under way or waits.
    mutating func deliverTokens(at now: ContinuousClock.Instant) -> [SessionAction] {
        guard phase != .stopped else { return [] }
        return channels.tokenDeliveries.keys.sorted().compactMap { identifier in
            guard let channel = channels[identifier], channel.isTokenDue, let endpoint = channel.endpoint,
                channels.tokenDeliveries[identifier]?.isReady(at: now) == true
            else { return nil }
            channels.tokenDeliveries[identifier]?.state = .underWay
            return .deliverToken(
                PushChannelAddress(endpoint, subscription: channel.keys.map { PushSubscription($0, endpoint: endpoint) }),
                to: identifier)
        }
    }

    /// When a token is tried again next.
    var nextTokenDelivery: ContinuousClock.Instant? {
        channels.tokenDeliveries.compactMap { identifier, delivery in
            guard delivery.isSet, channels[identifier]?.isTokenDue == true, case .waiting(let until) = delivery.state else {
                return nil
            }
            return until
        }.min()
    }

    /// What is under way goes on, and its end is heard; nothing new begins.
    mutating func pauseTokenDeliveries() {
        for (identifier, delivery) in channels.tokenDeliveries where delivery.state != .underWay {
            channels.tokenDeliveries[identifier]?.state = .idle
        }
    }
}

extension TokenDelivery {
    fileprivate func isReady(at now: ContinuousClock.Instant) -> Bool {
        switch state {
        case _ where !isSet: false
        case .idle: true
        case .underWay: false
        case .waiting(let until): until <= now
        }
    }
}
