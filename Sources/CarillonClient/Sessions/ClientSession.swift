import CarillonWire

/// The client's side of the protocol, and all that it knows: who it is, its channels, what waits to be said.
///
/// Facts go in, in the past tense and with the time at which they became known; actions come out. There is no clock,
/// no chance and no I/O inside. One value is one moment: the runner takes a copy, lets a fact change it, writes what
/// must be durable, and only then makes the copy the truth.
///
/// | Phase | Left by |
/// |---|---|
/// | stopped | `started` |
/// | resting | an app's `connectRequested`: there is nobody to be until a channel is wanted |
/// | registering | `deviceRegistered` → opening; `deviceRegistrationFailed` → waiting or resting |
/// | opening | `socketOpened` → identifying; `socketFailed` → waiting |
/// | identifying | the server's hello → live; no hello in time, or any other frame → closing |
/// | live | the end of the socket |
/// | closing | the end of the socket: we asked for it |
/// | waiting | its time → registering or opening |
///
/// The end of a socket leads to waiting, or, when its code says that the device is unknown, to resting. `stopped` ends
/// every phase.
struct ClientSession: Sendable {
    struct Settings: Sendable {
        var backOff = PushClient.BackOff()
        var keepAlive: Duration?
        /// How long the server may take to answer `hello`, or a question for a sign of life.
        var answerTime = Duration.seconds(10)
        /// How long to stay away when another process took over this identity.
        var replacedDelay = Duration.seconds(60)
        /// When to ask again after the server could not unregister a channel.
        var retryDelay = Duration.seconds(5)
    }

    enum Phase: Equatable, Sendable {
        case stopped
        case resting
        case registering
        case opening
        case identifying(until: ContinuousClock.Instant)
        case live
        case closing
        case waiting(until: ContinuousClock.Instant)
    }

    /// What waits for an answer of the app at most; a server that sends more ignores every window.
    static let undecidedLimit = 10_000
    /// How many results are kept while there is no connection. Older ones are dropped: the server sends those messages
    /// again, and their ids are known.
    static let queuedResultsLimit = Limits.resultsPerRequest
    /// The silence allowed when the server proposes nothing sensible.
    static let defaultKeepAlive = Duration.seconds(60)

    let settings: Settings
    var phase = Phase.stopped
    var identity: DeviceIdentity?
    /// There was an identity and the server does not know it any more, or it refused to give one. A new one is asked
    /// for when a channel is wanted, not before.
    var awaitsDemand: Bool
    var channels: [String: ChannelMachine]
    /// The channel that the server means by an id.
    var identifiers: [ChannelID: String]
    var withdrawals: Set<ChannelID>
    var connectDeadlines: [String: ContinuousClock.Instant] = [:]
    /// Of the channels whose tokens the app wants delivered.
    var tokenDeliveries: [String: TokenDelivery] = [:]
    /// Messages that the app has, or will be shown, and has not answered.
    var undecided: Set<String> = []
    var queuedResults: [HandledMessage] = []
    var availability = Availability(network: false, service: false)
    var schedule: ReconnectSchedule
    var keepAlive: KeepAlive?
    /// What the server asked for before it closes.
    var goodbyeDelay: Duration?
    /// When to unregister again what the server could not unregister.
    var retryAt: ContinuousClock.Instant?

    init(_ settings: Settings, restoring stored: StoredState = StoredState()) {
        self.settings = settings
        identity = stored.identity
        awaitsDemand = stored.identityWasLost
        channels = stored.channels
        withdrawals = stored.withdrawals
        schedule = ReconnectSchedule(settings.backOff)
        identifiers = [:]
        for (identifier, channel) in stored.channels {
            if let id = channel.channelID { identifiers[id] = identifier }
        }
    }

    var move: SessionMove {
        switch phase {
        case .registering: .registerDevice
        case .opening: identity.map { .openSocket($0) } ?? .rest
        case .stopped, .resting, .identifying, .live, .closing, .waiting: .rest
        }
    }

    /// When `timerFired` has something to do; nil when nothing is timed.
    var deadline: ContinuousClock.Instant? {
        var deadlines = Array(connectDeadlines.values)
        if phase != .stopped, let nextTokenDelivery { deadlines.append(nextTokenDelivery) }
        switch phase {
        case .waiting(let until), .identifying(let until): deadlines.append(until)
        case .live:
            if let keepAlive { deadlines.append(keepAlive.deadline) }
            if let retryAt { deadlines.append(retryAt) }
        case .stopped, .resting, .registering, .opening, .closing: break
        }
        return deadlines.min()
    }

    // MARK: Running

    mutating func started(at now: ContinuousClock.Instant) -> [SessionAction] {
        guard phase == .stopped else { return [] }
        return goOn() + deliverTokens(at: now)
    }

    mutating func stopped() -> [SessionAction] {
        phase = .stopped
        pauseTokenDeliveries()
        return endConnection(network: availability.network)
    }

    mutating func timerFired(at now: ContinuousClock.Instant) -> [SessionAction] {
        var actions: [SessionAction] = []
        for (identifier, deadline) in connectDeadlines where deadline <= now {
            actions += connectTimedOut(identifier)
        }
        actions += deliverTokens(at: now)
        switch phase {
        case .waiting(let until) where until <= now:
            actions += goOn()
        case .identifying(let until) where until <= now:
            actions += close(.protocolError)
        case .live:
            switch keepAlive?.timerFired(at: now) ?? .none {
            case .none: break
            case .ask: actions.append(.send(.ping))
            case .dead:
                availability.network = false
                actions += close(.keepAliveTimeout)
            }
            if let retryAt, retryAt <= now {
                self.retryAt = nil
                actions += unregistrations()
            }
        default: break
        }
        return actions
    }

    // MARK: The device

    mutating func deviceRegistered(_ identity: DeviceIdentity) -> [SessionAction] {
        guard phase == .registering else { return [] }
        self.identity = identity
        awaitsDemand = false
        phase = .opening
        availability.network = true
        return [.write(.saveIdentity(identity)), .tellAvailability(availability)]
    }

    mutating func deviceRegistrationFailed(
        _ failure: RegistrationFailure, at now: ContinuousClock.Instant, random: Double
    ) -> [SessionAction] {
        guard phase == .registering else { return [] }
        switch failure {
        case .unreachable:
            availability.network = false
            phase = .waiting(until: now + schedule.failed(random: random))
            return [.tellAvailability(availability)]
        case .unavailable(let retryAfter):
            availability.network = true
            let wait = schedule.failed(random: random)
            phase = .waiting(
                until: now + (retryAfter.map { max(wait, schedule.delay(after: $0, random: random)) } ?? wait))
            return [.tellAvailability(availability)]
        case .refused:
            availability.network = true
            awaitsDemand = true
            phase = .resting
            return [.tellAvailability(availability)]
                + endChannels { $0.registrationFailed(code: ChannelErrorCode.registrationRefused) }
        }
    }

    // MARK: The socket

    mutating func socketOpened(at now: ContinuousClock.Instant) -> [SessionAction] {
        guard phase == .opening, let identity else { return [.closeSocket(code: CloseCode.normal.rawValue)] }
        phase = .identifying(until: now + settings.answerTime)
        availability.network = true
        return [
            .tellAvailability(availability),
            .send(.hello(.init(carillon: 1, device: identity.device, credential: identity.credential))),
        ]
    }

    mutating func socketFailed(
        reachedServer: Bool, at now: ContinuousClock.Instant, random: Double
    ) -> [SessionAction] {
        guard phase != .stopped else { return [] }
        phase = .waiting(until: now + schedule.failed(random: random))
        return endConnection(network: reachedServer)
    }

    /// The socket ended; the code is nil when no close frame came.
    mutating func socketClosed(
        code: UInt16?, at now: ContinuousClock.Instant, random: Double
    ) -> [SessionAction] {
        guard phase != .stopped else { return [] }
        let goodbye = goodbyeDelay
        let code = code.flatMap(CloseCode.init)
        switch code {
        case .unauthorized, .gone:
            phase = .resting
            return endConnection(network: true) + loseDevice()
        case .replaced:
            phase = .waiting(until: now + schedule.delay(after: settings.replacedDelay, random: random))
        case nil, .normal, .protocolError, .unsupportedData, .invalidUTF8, .policy, .tooBig, .internalError, .restart,
            .tryLater, .keepAliveTimeout, .outputStalled:
            if let goodbye {
                phase = .waiting(until: now + schedule.delay(after: goodbye, random: random))
            } else {
                phase = .waiting(until: now + schedule.failed(random: random))
            }
        }
        return endConnection(network: availability.network)
    }

    /// Anything at all came in.
    mutating func receivedSignOfLife(at now: ContinuousClock.Instant) {
        keepAlive?.heard(at: now)
    }

    // MARK: Parts of the above

    mutating func close(_ code: CloseCode) -> [SessionAction] {
        phase = .closing
        return endConnection(network: availability.network) + [.closeSocket(code: code.rawValue)]
    }

    /// Takes up what is to be done when there is no connection and no reason to wait.
    mutating func goOn() -> [SessionAction] {
        if identity != nil {
            phase = .opening
        } else if awaitsDemand, !channels.values.contains(where: { $0.state == .connecting }) {
            phase = .resting
        } else {
            phase = .registering
        }
        return [.wake]
    }

    private mutating func endConnection(network: Bool) -> [SessionAction] {
        keepAlive = nil
        goodbyeDelay = nil
        retryAt = nil
        availability = Availability(network: network, service: false)
        return [.tellAvailability(availability)]
    }

    private mutating func loseDevice() -> [SessionAction] {
        identity = nil
        awaitsDemand = true
        undecided = []
        queuedResults = []
        withdrawals = []
        return [.write(.eraseIdentity)] + endChannels { $0.deviceLost() }
    }
}
