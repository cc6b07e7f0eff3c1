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
/// | resting | an app's `connectRequested`: no device is needed until a channel is wanted; the time of a failed farewell → parting |
/// | parting | `farewellSaid`, `farewellFailed` → the next of these, or resting |
/// | registering | `deviceRegistered` → opening; `deviceRegistrationFailed` → waiting or resting |
/// | locating | `serverLocated` → opening or renewing; another server's answer → waiting; none → the same, or waiting when it moved |
/// | renewing | `credentialRenewed`, `renewalUnsupported` → opening; `renewalRefused` → resting or waiting; `renewalFailed` → waiting |
/// | opening | `socketOpened` → identifying; `socketFailed` → waiting |
/// | identifying | the server's hello → live; no hello in time, or any other frame → closing |
/// | live | the end of the socket |
/// | closing | the end of the socket: we asked for it |
/// | waiting | its time → parting, registering, locating, renewing or opening |
///
/// The end of a socket leads to waiting, or, when its code says that the device is unknown, to resting. If the server never
/// accepted the credential of the registration, an unknown device leads to waiting and then to registering with the same
/// secret; so does `renewalRefused`. `stopped` ends every phase.
struct ClientSession: Sendable {
    struct Settings: Sendable {
        /// The configured address.
        var server = ""
        var backOff = PushClient.BackOff()
        var keepAlive: Duration?
        /// The app shows what fires while it is connected.
        var receivesFirings = false
        /// The bound of each channel's messages.
        var buffer = PushClient.ChannelBuffer()
        /// How long messages wait for a reader before it is said that there is none.
        var readerDelay = Duration.seconds(30)
        /// How long the server may take to answer `hello`, or a question for a sign of life.
        var answerTime = Duration.seconds(10)
        /// How long to stay away when another process took over this identity.
        var replacedDelay = Duration.seconds(60)
        /// When to ask again after the server could not unregister a channel, or could not register one and did not say when.
        var retryDelay = Duration.seconds(5)
    }

    enum Phase: Equatable, Sendable {
        case stopped
        case resting
        case parting
        case registering
        case locating
        case renewing
        case opening
        case identifying(until: ContinuousClock.Instant)
        case live
        case closing
        case waiting(until: ContinuousClock.Instant)
    }

    /// How many failures of messages are kept while there is no connection; the oldest gives way.
    static let reportsLimit = Limits.resultsPerRequest
    /// The silence allowed when the server proposes nothing sensible.
    static let defaultKeepAlive = Duration.seconds(60)
    /// Of Carillon's extension, that the client speaks: what fires is shown by the vendor's service, or comes here.
    static let (extensionVersion, versionWithFirings) = (3, 4)

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
    /// What waits in the store for the app, by channel.
    var buffers: [String: BufferUse]
    /// The position of the message that was stored last.
    var lastPosition: Int64
    /// Failures that the app told of while there was no connection.
    var reports: [MessageAnswer]
    /// The secret of a registration until the server accepts its credential for the first time.
    var registration: String?
    /// The server refuses the credential of the registration: the registration is repeated with its secret.
    var mustRegisterAgain = false
    /// The server that the identity belongs to; nil when it never said its name.
    var serverID: String?
    /// Where the identity was made, when that is another address than the configured one, and as long as it is not known
    /// who is there.
    var formerServer: String?
    /// A backup brought the store here.
    var isRestored: Bool
    /// The secret of the next credential, of a renewal that is under way.
    var renewal: String?
    /// There was no connection at the address that the server gave: it may have another by now.
    var mustLocate = false
    var farewells: [Farewell]
    /// Whether a farewell is being sent, by the call that signed out or by a task beside the live connection. One farewell
    /// is sent at a time.
    var isFarewellUnderWay = false
    /// The time at which the failed farewell is sent again. Until then the client does its other work.
    var farewellRetryAt: ContinuousClock.Instant?
    var farewellSchedule: ClientReconnectSchedule
    /// Somebody waits until it is known that nothing waits.
    var awaitsPong = false
    /// On this connection all that waited has come.
    var hasCaughtUp = false
    /// What this install is to the vendor's push service.
    var device: PushDeviceMachine
    var reporting: DeviceReporting
    /// What the server was not told yet of the user.
    var user: UserWord?
    /// Whose the server said the device is.
    var takenUser: String?
    var userNumbers: UserNumbers
    var userReporting: DeviceReporting
    /// Of the extension, that the live connection speaks.
    var liveVersion = 0
    /// Of the server, as it said at the last connection of this run; nil of one that does not say it. Another one says that the server was
    /// restored from a backup.
    var serverHistory: String?
    /// The server may not have the subscriptions that it had.
    var mayHaveLostSubscriptions = false
    /// Whether the server can be asked about services over it.
    var takesServices = false
    var availability = Availability(network: false, service: false)
    var schedule: ClientReconnectSchedule
    var keepAlive: KeepAlive?
    /// What the server asked for before it closes.
    var goodbyeDelay: Duration?
    /// When to unregister again what the server could not unregister.
    var retryAt: ContinuousClock.Instant?
    /// The channels that the server could not register, on the live connection.
    var registrationRetries: RegistrationRetries

    init(_ settings: Settings, restoring stored: StoredState = StoredState()) {
        self.settings = settings
        identity = stored.identity
        awaitsDemand = stored.identityWasLost
        channels = stored.channels
        withdrawals = stored.withdrawals
        buffers = stored.buffers
        lastPosition = stored.buffers.values.map(\.lastPosition).max() ?? 0
        reports = stored.reports
        registration = stored.registration
        serverID = stored.serverID
        formerServer = stored.formerServer
        isRestored = stored.isRestored
        renewal = stored.renewal
        farewells = stored.farewells
        device = stored.device
        user = stored.user
        takenUser = stored.takenUser
        userNumbers = UserNumbers(isPending: stored.user != nil)
        reporting = DeviceReporting(schedule: ClientReconnectSchedule(settings.backOff))
        userReporting = reporting
        schedule = ClientReconnectSchedule(settings.backOff)
        farewellSchedule = schedule
        registrationRetries = RegistrationRetries(settings.backOff)
        identifiers = [:]
        for (identifier, channel) in stored.channels {
            if let id = channel.channelID { identifiers[id] = identifier }
        }
    }

    var move: SessionMove {
        switch phase {
        case .parting: farewells.first.map { .sayFarewell($0) } ?? .rest
        case .registering: .registerDevice
        case .locating: .locateServer
        case .renewing: identity.map { .renewCredential($0) } ?? .rest
        case .opening: identity.map { .openSocket($0) } ?? .rest
        case .stopped, .resting, .identifying, .live, .closing, .waiting: .rest
        }
    }

    /// When `timerFired` has something to do; nil when nothing is timed.
    var deadline: ContinuousClock.Instant? {
        var deadlines = Array(connectDeadlines.values)
        if phase != .stopped, let nextTokenDelivery { deadlines.append(nextTokenDelivery) }
        if phase != .stopped { deadlines += buffers.values.compactMap(\.lookAt) }
        switch phase {
        case .waiting(let until), .identifying(let until): deadlines.append(until)
        case .live:
            if let keepAlive { deadlines.append(keepAlive.deadline) }
            if let retryAt { deadlines.append(retryAt) }
            deadlines += [reporting.retryAt, userReporting.retryAt, registrationRetries.dueAt, farewellDueAt]
                .compactMap(\.self)
        case .resting: if let farewellDueAt { deadlines.append(farewellDueAt) }
        case .stopped, .parting, .registering, .locating, .renewing, .opening, .closing: break
        }
        return deadlines.min()
    }

    // MARK: Running

    mutating func started(at now: ContinuousClock.Instant) -> [SessionAction] {
        guard phase == .stopped else { return [] }
        device.started()
        // What was under way when the last run ended is answered to nobody.
        reporting.isUnderWay = false
        userReporting.isUnderWay = false
        farewellRetryAt = nil
        let delay = settings.readerDelay
        for identifier in Array(buffers.keys) { buffers[identifier]?.lookLater(than: now, delay) }
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
        if phase != .stopped { actions += lookForReaders(at: now) }
        switch phase {
        case .waiting(let until) where until <= now:
            endFarewellWait(at: now)
            actions += goOn()
        case .resting:
            if endFarewellWait(at: now) { actions += goOn() }
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
            actions += registerAgain(at: now)
            actions += reportUser(at: now) + reportDevice(at: now)
            if endFarewellWait(at: now) { actions += nextFarewell() }
        default: break
        }
        return actions
    }

    /// A push woke the app: is there a connection, and has everything come? Where all that waited has come already, the answer to a
    /// ping proves that there is; a connection without an answer is replaced, and then everything comes.
    mutating func wakeReceived(at now: ContinuousClock.Instant) -> [SessionAction] {
        switch phase {
        case .live:
            awaitsPong = hasCaughtUp
            return [.send(.ping)]
        case .waiting:
            endFarewellWait(at: now)
            return goOn()
        case .stopped, .resting, .parting, .registering, .locating, .renewing, .opening, .identifying, .closing: return []
        }
    }

    // MARK: The socket

    mutating func socketOpened(at now: ContinuousClock.Instant) -> [SessionAction] {
        guard phase == .opening, let identity else { return [.closeSocket(code: CloseCode.normal.rawValue)] }
        phase = .identifying(until: now + settings.answerTime)
        availability.network = true
        return [
            .tellAvailability(availability),
            .send(
                .hello(
                    .init(
                        carillon: settings.receivesFirings ? Self.versionWithFirings : Self.extensionVersion,
                        device: identity.device, credential: identity.credential, also: ["services"]))),
        ]
    }

    mutating func socketFailed(
        reachedServer: Bool, at now: ContinuousClock.Instant, random: Double
    ) -> [SessionAction] {
        guard phase != .stopped else { return [] }
        mustLocate = true
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
            guard identity != nil else { return endConnection(network: true) + goOn() }
            if code == .unauthorized, registration != nil { return repeatRegistration(at: now, random: random) }
            return parted(network: true)
        case .replaced:
            phase = .waiting(until: now + schedule.delay(after: settings.replacedDelay, random: random))
            return [
                .noteFailure(.replaced, "Another connection took this device's place; was its storage directory copied?")
            ] + endConnection(network: availability.network)
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
        if !farewells.isEmpty, !isFarewellUnderWay, farewellRetryAt == nil {
            phase = .parting
        } else if identity != nil, !mustRegisterAgain {
            phase = formerServer != nil || mustLocate ? .locating : reaching
        } else if awaitsDemand, !channels.values.contains(where: { $0.state == .connecting }) {
            phase = .resting
        } else {
            phase = .registering
        }
        return [.wake]
    }

    mutating func endConnection(network: Bool) -> [SessionAction] {
        keepAlive = nil
        awaitsPong = false
        goodbyeDelay = nil
        retryAt = nil
        registrationRetries.reset()
        availability = Availability(network: network, service: false)
        return [.tellAvailability(availability), .tellSubscriptions(.disconnected)]
    }

    /// The server does not know this device any more.
    mutating func parted(network: Bool) -> [SessionAction] {
        // Before the channels' readers hear of it, so that they can ask for the reason.
        [.noteFailure(.deviceUnknown, "The server does not know this device any more.")]
            + endConnection(network: network) + loseDevice()
    }

    mutating func loseDevice() -> [SessionAction] {
        identity = nil
        serverID = nil
        mustRegisterAgain = false
        (isRestored, renewal) = (false, nil)
        awaitsDemand = true
        reports = []
        withdrawals = []
        return [.write(.eraseIdentity), .tellSubscriptions(.deviceLost)] + pushDeviceLost() + endChannels { $0.deviceLost() }
    }
}
