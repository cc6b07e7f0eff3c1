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
/// | resting | an app's `connectRequested`: no device is needed until a channel is wanted; the time of a failed deregistration → deregistering |
/// | deregistering | `deregistered`, `deregistrationFailed` → the next of these, or resting |
/// | registering | `deviceRegistered` → opening; `deviceRegistrationFailed` → waiting or resting |
/// | locating | `serverLocated` → opening or renewing; another server's answer → waiting; none → the same, or waiting when it moved |
/// | renewing | `credentialRenewed`, `renewalUnsupported` → opening; `renewalRefused` → resting or waiting; `renewalFailed` → waiting |
/// | opening | `socketOpened` → identifying; `socketFailed` → waiting |
/// | identifying | the server's hello → live; no hello in time, or any other frame → closing |
/// | live | the end of the socket |
/// | closing | the end of the socket: we asked for it |
/// | waiting | its time → deregistering, registering, locating, renewing or opening |
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
        case deregistering
        case registering
        case locating
        case renewing
        case opening
        case identifying(until: ContinuousClock.Instant)
        case live
        case closing
        case waiting(until: ContinuousClock.Instant)
    }

    /// The silence allowed when the server proposes nothing sensible.
    static let defaultKeepAlive = Duration.seconds(60)
    /// Of Carillon's extension, that the client speaks: what fires is shown by the vendor's service, or comes here.
    static let (extensionVersion, versionWithFirings) = (3, 4)

    let settings: Settings
    var phase = Phase.stopped
    var availability = Availability(network: false, service: false)
    var schedule: ClientReconnectSchedule
    var registration: DeviceRegistration
    var knownServer: KnownServer
    var deregistrations: Deregistrations
    var connection = SessionConnection()
    var channels: SessionChannels
    var messages: SessionMessages
    /// What this install is to the vendor's push service.
    var device: PushDeviceMachine
    var deviceReporting: SessionReporting
    var user: SessionUser

    init(_ settings: Settings, restoring stored: StoredState = StoredState()) {
        self.settings = settings
        schedule = ClientReconnectSchedule(settings.backOff)
        registration = DeviceRegistration(restoring: stored)
        knownServer = KnownServer(id: stored.serverID, formerAddress: stored.formerServer)
        deregistrations = Deregistrations(stored.deregistrations, settings.backOff)
        channels = SessionChannels(restoring: stored, settings.backOff)
        messages = SessionMessages(restoring: stored)
        device = stored.device
        deviceReporting = SessionReporting(settings.backOff)
        user = SessionUser(restoring: stored, settings.backOff)
    }

    var move: SessionMove {
        switch phase {
        case .deregistering: deregistrations.waiting.first.map { .deregister($0) } ?? .rest
        case .registering: .registerDevice
        case .locating: .locateServer
        case .renewing: registration.identity.map { .renewCredential($0) } ?? .rest
        case .opening: registration.identity.map { .openSocket($0) } ?? .rest
        case .stopped, .resting, .identifying, .live, .closing, .waiting: .rest
        }
    }

    /// When `timerFired` has something to do; nil when nothing is timed.
    var deadline: ContinuousClock.Instant? {
        var deadlines = Array(channels.connectDeadlines.values)
        if phase != .stopped, let nextTokenDelivery { deadlines.append(nextTokenDelivery) }
        if phase != .stopped { deadlines += messages.buffers.values.compactMap(\.checkAt) }
        switch phase {
        case .waiting(let until), .identifying(let until): deadlines.append(until)
        case .live:
            deadlines += [
                connection.keepAlive?.deadline, channels.unregistrationRetryAt, channels.registrationRetries.dueAt,
                deviceReporting.retryAt, user.reporting.retryAt, deregistrations.dueAt,
            ].compactMap(\.self)
        case .resting: deadlines += [deregistrations.dueAt].compactMap(\.self)
        case .stopped, .deregistering, .registering, .locating, .renewing, .opening, .closing: break
        }
        return deadlines.min()
    }

    // MARK: Running

    mutating func started(at now: ContinuousClock.Instant) -> [SessionAction] {
        guard phase == .stopped else { return [] }
        device.started()
        // What was under way when the last run ended is answered to nobody.
        deviceReporting.ended()
        user.reporting.ended()
        deregistrations.started()
        let delay = settings.readerDelay
        for identifier in Array(messages.buffers.keys) { messages.buffers[identifier]?.scheduleCheck(from: now, delay) }
        return proceed() + deliverTokens(at: now)
    }

    mutating func stopped() -> [SessionAction] {
        phase = .stopped
        pauseTokenDeliveries()
        return endConnection(network: availability.network)
    }

    mutating func timerFired(at now: ContinuousClock.Instant) -> [SessionAction] {
        var actions: [SessionAction] = []
        for (identifier, deadline) in channels.connectDeadlines where deadline <= now {
            actions += connectTimedOut(identifier)
        }
        actions += deliverTokens(at: now)
        if phase != .stopped { actions += checkForReaders(at: now) }
        switch phase {
        case .waiting(let until) where until <= now:
            deregistrations.endWait(at: now)
            actions += proceed()
        case .resting:
            if deregistrations.endWait(at: now) { actions += proceed() }
        case .identifying(let until) where until <= now:
            actions += close(.protocolError)
        case .live:
            switch connection.keepAlive?.timerFired(at: now) ?? .none {
            case .none: break
            case .ping: actions.append(.send(.ping))
            case .dead:
                availability.network = false
                actions += close(.keepAliveTimeout)
            }
            if let retryAt = channels.unregistrationRetryAt, retryAt <= now {
                channels.unregistrationRetryAt = nil
                actions += unregistrations()
            }
            actions += registerAgain(at: now)
            actions += reportUser(at: now) + reportDevice(at: now)
            if deregistrations.endWait(at: now) { actions += nextDeregistration() }
        default: break
        }
        return actions
    }

    /// A push woke the app: is there a connection, and has everything come? Where all that waited has come already, the answer to a
    /// ping proves that there is; a connection without an answer is replaced, and then everything comes.
    mutating func wakeReceived(at now: ContinuousClock.Instant) -> [SessionAction] {
        switch phase {
        case .live:
            connection.awaitsPong = connection.hasCaughtUp
            return [.send(.ping)]
        case .waiting:
            deregistrations.endWait(at: now)
            return proceed()
        case .stopped, .resting, .deregistering, .registering, .locating, .renewing, .opening, .identifying, .closing:
            return []
        }
    }

    // MARK: The socket

    mutating func socketOpened(at now: ContinuousClock.Instant) -> [SessionAction] {
        guard phase == .opening, let identity = registration.identity else {
            return [.closeSocket(code: CloseCode.normal.rawValue)]
        }
        phase = .identifying(until: now + settings.answerTime)
        availability.network = true
        return [
            .notifyAvailability(availability),
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
        knownServer.mustLocate = true
        phase = .waiting(until: now + schedule.failed(random: random))
        return endConnection(network: reachedServer)
    }

    /// The socket ended; the code is nil when no close frame came.
    mutating func socketClosed(
        code: UInt16?, at now: ContinuousClock.Instant, random: Double
    ) -> [SessionAction] {
        guard phase != .stopped else { return [] }
        let goodbye = connection.goodbyeDelay
        let code = code.flatMap(CloseCode.init)
        switch code {
        case .unauthorized, .gone:
            phase = .resting
            guard registration.identity != nil else { return endConnection(network: true) + proceed() }
            if code == .unauthorized, registration.secret != nil { return repeatRegistration(at: now, random: random) }
            return deviceUnknown(network: true)
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
        connection.keepAlive?.received(at: now)
    }

    // MARK: Parts of the above

    mutating func close(_ code: CloseCode) -> [SessionAction] {
        phase = .closing
        return endConnection(network: availability.network) + [.closeSocket(code: code.rawValue)]
    }

    /// Takes up what is to be done when there is no connection and no reason to wait.
    mutating func proceed() -> [SessionAction] {
        if deregistrations.next != nil {
            phase = .deregistering
        } else if registration.identity != nil, !registration.mustRepeat {
            phase = knownServer.formerAddress != nil || knownServer.mustLocate ? .locating : reaching
        } else if registration.awaitsDemand, !channels.areConnecting {
            phase = .resting
        } else {
            phase = .registering
        }
        return [.wake]
    }

    mutating func endConnection(network: Bool) -> [SessionAction] {
        connection = SessionConnection()
        channels.connectionEnded()
        availability = Availability(network: network, service: false)
        return [.notifyAvailability(availability), .notifySubscriptions(.disconnected)]
    }

    /// The server does not know this device any more.
    mutating func deviceUnknown(network: Bool) -> [SessionAction] {
        // Before the channels' readers hear of it, so that they can ask for the reason.
        [.noteFailure(.deviceUnknown, "The server does not know this device any more.")]
            + endConnection(network: network) + removeDevice()
    }

    mutating func removeDevice() -> [SessionAction] {
        registration.lost()
        knownServer.id = nil
        clearReports()
        return [.write(.eraseIdentity), .notifySubscriptions(.deviceLost)] + pushDeviceLost()
            + endChannels { $0.deviceLost() }
    }

    /// The server hears no more of the messages and channels of a former device.
    mutating func clearReports() {
        _ = messages.takeReports()
        channels.withdrawals = []
    }
}
