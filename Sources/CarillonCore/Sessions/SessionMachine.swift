package import CarillonWire

/// The protocol of one socket: Mozilla's push protocol, and Carillon's extension of it.
///
/// - *awaiting hello*: nothing but `hello` is understood, and it must come before the deadline. Left by `hello` to
///   *identifying*.
/// - *identifying*: the edge looks the device up. Frames that come meanwhile are kept, a few, in order. Left to *open*,
///   or by closing.
/// - *open*: envelopes are given through an ``EnvelopeWindow``, requests are answered one after the other in order.
///   A client without registration gets an identity here that is stored with its first channel; until then it has no
///   inbox.
/// - *closed*: a close was asked for; whatever still comes is ignored.
///
/// Facts go in, in the past tense; what to do about them comes out, in order.
package struct SessionMachine: Sendable {
    package enum Action: Equatable, Sendable {
        case send(ServerFrame)
        /// Find out who this is, and say ``identified(_:)`` or ``identificationRefused(_:)``.
        case identify(ClientFrame.Hello)
        /// From now on envelopes of the device come here.
        case join(DeviceSerial)
        case load(EnvelopeWindow.Load, DeviceSerial)
        /// Do it, and say ``answered(_:)``.
        case perform(Request)
        case settle(MessageID, DeviceSerial, Outcome, code: Int?)
        /// Answer an offer of TTL 0.
        case answerOffer(wasGiven: Bool)
        case ping
        case close(CloseCode, String)
    }

    package enum Request: Equatable, Sendable {
        case register(Owner, ChannelID, ClientFrame.Register)
        case unregister(Owner, ChannelID, asWritten: String)
    }

    /// Whose request it is: a device of the store, or one that will be stored with its first channel.
    package enum Owner: Equatable, Sendable {
        case device(DeviceSerial)
        case provisional(UserAgentID)
    }

    package struct Identity: Equatable, Sendable {
        package var owner: Owner
        /// What `hello` is answered with.
        package var uaid: String
        package init(owner: Owner, uaid: String) {
            self.owner = owner
            self.uaid = uaid
        }
    }

    package enum Answer: Equatable, Sendable {
        case registered(asWritten: String, endpoint: String, device: DeviceSerial)
        case registrationRefused(asWritten: String, ErrorCode)
        case unregistered(asWritten: String, status: Int)
    }

    package struct Settings: Equatable, Sendable {
        package var window: EnvelopeWindow.Limits
        package var keepAliveSeconds: Int
        package var server: ServerID?
        package init(window: EnvelopeWindow.Limits, keepAliveSeconds: Int, server: ServerID? = nil) {
            self.window = window
            self.keepAliveSeconds = keepAliveSeconds
            self.server = server
        }
    }

    private enum State {
        case awaitingHello
        case identifying(isCarillon: Bool, kept: [ClientFrame])
        case open(Open)
        case closed
    }

    private struct Open {
        var owner: Owner
        var isCarillon: Bool
        var window: EnvelopeWindow
        var requests: [ClientFrame] = []
        var isPerforming = false
        var isOutputPaused = false

        var device: DeviceSerial? {
            if case .device(let device) = owner { device } else { nil }
        }
    }

    private static let keptFrames = 64
    private static let queuedRequests = 2 * Limits.channelsPerDevice

    private let settings: Settings
    private var state = State.awaitingHello
    private var awaitsSignOfLife = false
    private var isOutputPaused = false

    package init(settings: Settings) { self.settings = settings }

    package var device: DeviceSerial? {
        if case .open(let open) = state { open.device } else { nil }
    }

    package var isAwaitingHello: Bool {
        if case .awaitingHello = state { true } else { false }
    }

    // MARK: What the client did

    package mutating func received(_ frame: ClientFrame) -> [Action] {
        awaitsSignOfLife = false
        switch state {
        case .closed:
            return []
        case .awaitingHello:
            guard case .hello(let hello) = frame else {
                return close(.protocolError, "hello_expected: the first frame must be a hello")
            }
            state = .identifying(isCarillon: hello.carillon != nil, kept: [])
            return [.identify(hello)]
        case .identifying(let isCarillon, var kept):
            guard kept.count < Self.keptFrames else {
                return close(.policy, "too_many_frames: wait for the answer to hello")
            }
            kept.append(frame)
            state = .identifying(isCarillon: isCarillon, kept: kept)
            return []
        case .open:
            return withOpen { Self.received(frame, in: &$0) }
        }
    }

    /// Something came that is no frame.
    package mutating func receivedInvalidFrame(_ code: CloseCode, _ reason: String) -> [Action] { close(code, reason) }

    /// Any bytes at all are a sign of life.
    package mutating func receivedSignOfLife() { awaitsSignOfLife = false }

    private static func received(_ frame: ClientFrame, in open: inout Open) -> [Action] {
        switch frame {
        case .hello:
            return [.close(.protocolError, "hello_repeated: a connection says hello once")]
        case .ping:
            return [.send(.pong)]
        case .unknown(let type):
            // Mozilla's clients may know more than this server; a Carillon client says which version it speaks.
            guard open.isCarillon else { return [] }
            return [.close(.protocolError, "frame_unknown: no messageType \"\(type)\" exists")]
        case .broadcastSubscribe(let ids):
            return [.send(.unknownBroadcasts(ids))]
        case .register, .unregister:
            guard open.requests.count < Self.queuedRequests else {
                return [.close(.policy, "too_many_requests: wait for answers")]
            }
            open.requests.append(frame)
            return performNext(in: &open)
        case .ack(let updates):
            guard updates.count <= Limits.resultsPerRequest else {
                return [.close(.policy, "too_many_updates: at most \(Limits.resultsPerRequest) in one ack")]
            }
            return updates.flatMap { update in
                let isDelivered = (update.code ?? ResultCode.delivered) == ResultCode.delivered
                return settled(update.version, isDelivered ? .acknowledged : .failed, update.code, in: &open)
            }
        case .nack(let version, let code):
            return settled(version, .failed, code ?? ResultCode.other, in: &open)
        }
    }

    private static func settled(_ version: String, _ outcome: Outcome, _ code: Int?, in open: inout Open) -> [Action] {
        guard let device = open.device, let id = MessageID(version) else { return [] }
        return [.settle(id, device, outcome, code: code)] + load(open.window.settled(id), device)
    }

    private static func performNext(in open: inout Open) -> [Action] {
        while !open.isPerforming, !open.isOutputPaused, !open.requests.isEmpty {
            switch open.requests.removeFirst() {
            case .register(let register):
                guard let id = ChannelID(register.channelID) else { return [badChannelID] }
                open.isPerforming = true
                return [.perform(.register(open.owner, id, register))]
            case .unregister(let channelID, _):
                guard let id = ChannelID(channelID) else { return [badChannelID] }
                open.isPerforming = true
                return [.perform(.unregister(open.owner, id, asWritten: channelID))]
            default:
                continue
            }
        }
        return []
    }

    private static let badChannelID = Action.close(
        .protocolError, "channel_id_invalid: a channelID is a UUID with dashes")

    // MARK: What the edge found out

    package mutating func identified(_ identity: Identity) -> [Action] {
        guard case .identifying(let isCarillon, let kept) = state else { return [] }
        var open = Open(
            owner: identity.owner, isCarillon: isCarillon, window: EnvelopeWindow(limits: settings.window),
            isOutputPaused: isOutputPaused)
        if isOutputPaused, open.device != nil { open.window.outputPaused() }
        let extensions =
            isCarillon
            ? ServerFrame.Hello.Carillon(
                keepAliveSeconds: settings.keepAliveSeconds, server: settings.server?.description) : nil
        var actions: [Action] = []
        if case .device(let device) = identity.owner { actions.append(.join(device)) }
        actions.append(.send(.hello(.init(uaid: identity.uaid, carillon: extensions))))
        if case .device(let device) = identity.owner { actions += Self.load(open.window.began(), device) }
        state = .open(open)
        for frame in kept { actions += received(frame) }
        return actions
    }

    package mutating func identificationRefused(_ code: CloseCode, _ reason: String) -> [Action] { close(code, reason) }

    package mutating func answered(_ answer: Answer) -> [Action] {
        withOpen { open in
            open.isPerforming = false
            var actions: [Action] = []
            switch answer {
            case .registered(let asWritten, let endpoint, let device):
                if open.device == nil {
                    open.owner = .device(device)
                    if open.isOutputPaused { open.window.outputPaused() }
                    actions.append(.join(device))
                    actions += Self.load(open.window.began(), device)
                }
                actions.append(.send(.register(.init(channelID: asWritten, status: 200, pushEndpoint: endpoint))))
            case .registrationRefused(let asWritten, let code):
                actions.append(.send(.register(.init(channelID: asWritten, status: code.frameStatus))))
            case .unregistered(let asWritten, let status):
                actions.append(.send(.unregister(channelID: asWritten, status: status)))
            }
            return actions + Self.performNext(in: &open)
        }
    }

    package mutating func loaded(_ envelopes: [Envelope], isComplete: Bool, at now: Timestamp) -> [Action] {
        withOpen { open in
            guard let device = open.device else { return [] }
            let loaded = open.window.loaded(envelopes, isComplete: isComplete, at: now)
            var actions = loaded.give.flatMap { Self.give($0, device, in: &open) }
            actions += Self.load(loaded.load, device)
            if loaded.isCaughtUp, open.isCarillon { actions.append(.send(.caughtUp)) }
            return actions
        }
    }

    package mutating func loadFailed() -> [Action] {
        close(.internalError, "storage_unavailable: come back later")
    }

    /// The load found that the device was deleted, which nobody told this session when it joined too late.
    package mutating func foundDeviceGone() -> [Action] { ended(because: .deviceGone) }

    // MARK: What happened to the inbox

    package mutating func offered(_ envelope: Envelope, isVolatile: Bool, at now: Timestamp) -> [Action] {
        let answer: [Action] = isVolatile ? [.answerOffer(wasGiven: false)] : []
        guard case .open(var open) = state, let device = open.device else { return answer }
        state = .closed
        defer { state = .open(open) }
        switch open.window.offered(envelope, isVolatile: isVolatile, at: now) {
        case .give:
            return Self.give(envelope, device, in: &open) + (isVolatile ? [.answerOffer(wasGiven: true)] : [])
        case .later(let load):
            return answer + Self.load(load, device)
        }
    }

    package mutating func storedMore(at now: Timestamp) -> [Action] {
        withOpen { open in
            guard let device = open.device else { return [] }
            return Self.load(open.window.storedMore(at: now), device)
        }
    }

    package mutating func withdrew(_ withdrawal: EnvelopeWindow.Withdrawal) -> [Action] {
        withOpen { open in
            guard let device = open.device else { return [] }
            return Self.load(open.window.withdrew(withdrawal), device)
        }
    }

    /// The device answered for envelopes by another way.
    package mutating func settledElsewhere(_ ids: [MessageID]) -> [Action] {
        withOpen { open in
            guard let device = open.device else { return [] }
            return ids.flatMap { Self.load(open.window.settled($0), device) }
        }
    }

    // MARK: Whether the peer reads

    /// What was sent does not go out: nothing is given, and no request performed, until it does.
    package mutating func outputPaused() {
        isOutputPaused = true
        guard case .open(var open) = state else { return }
        state = .closed
        open.isOutputPaused = true
        // A client without a device has nothing to load yet; its window begins with its first channel.
        if open.device != nil { open.window.outputPaused() }
        state = .open(open)
    }

    package mutating func outputResumed(at now: Timestamp) -> [Action] {
        isOutputPaused = false
        return withOpen { open in
            open.isOutputPaused = false
            var actions: [Action] = []
            if let device = open.device { actions = Self.load(open.window.outputResumed(at: now), device) }
            return actions + Self.performNext(in: &open)
        }
    }

    /// For too long the peer took too little of what was sent.
    package mutating func outputStalled() -> [Action] {
        close(.outputStalled, "output_stalled: read what is sent")
    }

    // MARK: The end

    package mutating func ended(because reason: SessionEnd) -> [Action] {
        switch reason {
        case .replaced: close(.replaced, "replaced: a newer connection of this device took over")
        case .deviceGone: close(.gone, "gone: the device was deleted")
        case .serverStops: serverStopped()
        }
    }

    private mutating func serverStopped() -> [Action] {
        let closing: [Action]
        if case .open(let open) = state, open.isCarillon {
            closing = [.send(.goodbye(delaySeconds: Self.comeBackSeconds))]
        } else {
            closing = []
        }
        return closing + close(.restart, "restart: come back later")
    }

    /// When clients are asked to come back after a goodbye; each adds its own jitter.
    private static let comeBackSeconds = 1

    /// The time for `hello` is over.
    package mutating func helloTimedOut() -> [Action] {
        guard isAwaitingHello else { return [] }
        return close(.policy, "hello_timeout: say hello first")
    }

    /// Nothing was heard for a while.
    package mutating func wasSilent() -> [Action] {
        if case .closed = state { return [] }
        if awaitsSignOfLife { return close(.keepAliveTimeout, "keep_alive_timeout: no pong came") }
        awaitsSignOfLife = true
        return [.ping]
    }

    /// The connection is gone: volatile envelopes that were given and never answered for are lost.
    package mutating func disconnected() -> [Action] {
        guard case .open(var open) = state, let device = open.device else {
            state = .closed
            return []
        }
        state = .closed
        return open.window.ended().map { .settle($0, device, .dropped, code: nil) }
    }

    private static func load(_ load: EnvelopeWindow.Load?, _ device: DeviceSerial) -> [Action] {
        load.map { [.load($0, device)] } ?? []
    }

    private mutating func close(_ code: CloseCode, _ reason: String) -> [Action] {
        if case .closed = state { return [] }
        let lost = disconnected()
        return lost + [.close(code, reason)]
    }

    private mutating func withOpen(_ body: (inout Open) -> [Action]) -> [Action] {
        guard case .open(var open) = state else { return [] }
        state = .closed
        let actions = body(&open)
        state = .open(open)
        guard case .close(let code, let reason)? = actions.last else { return actions }
        return actions.dropLast() + close(code, reason)
    }

    /// Puts an envelope into a frame. A client that does not speak Carillon's extension is sent what everyone knows;
    /// any other envelope leaves its inbox as unsupported.
    private static func give(_ envelope: Envelope, _ device: DeviceSerial, in open: inout Open) -> [Action] {
        guard open.isCarillon || envelope.behaviour.isKnownToAll else {
            return [.settle(envelope.id, device, .unsupported, code: nil)] + load(open.window.settled(envelope.id), device)
        }
        return [.send(ServerFrame(envelope))]
    }
}
