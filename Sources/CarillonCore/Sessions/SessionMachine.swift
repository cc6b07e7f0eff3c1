package import CarillonWire

/// The protocol of one socket: Mozilla's push protocol, and Carillon's extension of it.
///
/// - *awaiting hello*: only `hello` is accepted, and it must arrive before the deadline. Left by `hello` to *identifying*.
/// - *identifying*: the connection's handler finds the device, joins its session, and reads its inbox. A few frames that arrive
///   meanwhile are kept in order. Left to *open*, or by closing.
/// - *open*: a ``DeliveryMachine`` delivers envelopes. Requests are answered one after the other in order. A client without
///   registration receives an identity, which is stored with its first channel; until then it has no inbox. Then the stored
///   device is the owner, and the handler makes the connection its session. The session can be offered envelopes at once, and
///   delivers none before ``loaded(_:at:)``.
/// - *closed*: a close was requested. Further frames are ignored.
///
/// The inputs are facts in the past tense. The outputs are actions, in the order in which they must be done.
package struct SessionMachine: Sendable {
    package enum Action: Equatable, Sendable {
        case send(ServerFrame)
        /// Authenticate the client, make the connection a session of its device, read this page of its inbox, and call
        /// ``identified(_:_:reported:at:)`` or ``identificationRefused(_:_:)``.
        case identify(ClientFrame.Hello, PageRequest)
        /// Make the connection a session of the device, read this page of its inbox, and call ``loaded(_:at:)`` or
        /// ``loadFailed(_:)``. The device was stored with its first channel.
        case arrive(UserAgentID, DeviceSerial, PageRequest, speaking: Int)
        case load(PageRequest, DeviceSerial)
        /// Perform the request, and call ``answered(_:)``.
        case perform(Request)
        case finish(MessageID, DeviceSerial, Outcome, code: Int?)
        /// Answer an offer of an envelope of TTL 0.
        case answerOffer(wasAccepted: Bool)
        case ping
        case close(CloseCode, String)
    }

    package enum Request: Equatable, Sendable {
        case register(Owner, ChannelID, ClientFrame.Register)
        case unregister(Owner, ChannelID, asWritten: String)
        case ask(Owner, ClientFrame.Request)
    }

    /// The owner of a request: a stored device, or a device that will be stored with its first channel.
    package enum Owner: Equatable, Sendable {
        case device(DeviceSerial)
        case provisional(UserAgentID)
    }

    package struct Identity: Equatable, Sendable {
        package var owner: Owner
        /// The `uaid` of the answer to `hello`.
        package var uaid: String
        package init(owner: Owner, uaid: String) {
            self.owner = owner
            self.uaid = uaid
        }
    }

    package enum Answer: Equatable, Sendable {
        /// The device can have been stored or found by this request.
        case registered(asWritten: String, endpoint: String, device: DeviceSerial)
        case registrationRefused(asWritten: String, Refusal)
        case unregistered(asWritten: String)
        case unregistrationFailed(asWritten: String)
        case asked(ServerFrame.Answer)
    }

    package struct Settings: Equatable, Sendable {
        package var window: DeliveryMachine.Limits
        package var keepAliveSeconds: Int
        package var server: ServerID?
        /// The history of the store. It is another one after the server was restored from a backup.
        package var history: String?
        package init(
            window: DeliveryMachine.Limits, keepAliveSeconds: Int, server: ServerID? = nil, history: String? = nil
        ) {
            self.window = window
            self.keepAliveSeconds = keepAliveSeconds
            self.server = server
            self.history = history
        }
    }

    private enum State {
        case awaitingHello
        case identifying(Identifying)
        case open(Open)
        case closed
    }

    private struct Identifying {
        var version: Int
        var supportsServices: Bool
        /// The machine waits for its first load.
        var delivery: DeliveryMachine
        var kept: [ClientFrame] = []
    }

    private struct Open {
        var owner: Owner
        /// The version of Carillon's extension that the client speaks; 0 if it speaks Mozilla's protocol alone.
        var version: Int
        var delivery: DeliveryMachine
        var requests: [ClientFrame] = []
        /// The approximate size of the waiting requests in bytes.
        var requestBytes = 0
        var performing = 0
        /// Requests that took too long and were refused, but are still being performed.
        var late: Set<Int> = []
        /// Whether the request that is being performed can affect the requests after it.
        var isPerformingAlone = false
        var isOutputPaused = false
        var supportsServices = false
        var owesProviders = false

        var isCarillon: Bool { version > 0 }

        func mayPerform(_ request: ClientFrame) -> Bool {
            performing == 0 || !isPerformingAlone && request.isIndependent && performing < SessionMachine.performedAtOnce
        }

        var device: DeviceSerial? {
            if case .device(let device) = owner { device } else { nil }
        }
    }

    private static let keptFrames = 64
    private static let queuedRequests = 2 * Limits.channelsPerDevice
    private static let queuedRequestBytes = 512 << 10
    private static let performedAtOnce = 16
    /// The first version in which clients can send the requests of the HTTP API over the socket.
    private static let asksSince = 3
    private static let hearsServicesSince = EnvelopeKind.serviceNotice.behaviour.firstVersion

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

    // MARK: Frames of the client

    package mutating func received(_ frame: ClientFrame) -> [Action] {
        awaitsSignOfLife = false
        switch state {
        case .closed:
            return []
        case .awaitingHello:
            guard case .hello(let hello) = frame else {
                return close(.protocolError, "hello_expected: send hello as the first frame")
            }
            let version = min(max(0, hello.carillon ?? 0), CarillonVersion.ofExtension)
            let asksForServices = hello.also.contains("services")
            var delivery = DeliveryMachine(
                limits: settings.window, version: version, also: asksForServices ? EnvelopeKind.services : [])
            let load = delivery.began()
            state = .identifying(
                Identifying(
                    version: version, supportsServices: asksForServices || version >= Self.hearsServicesSince,
                    delivery: delivery))
            return [.identify(hello, load)]
        case .identifying(var identifying):
            guard identifying.kept.count < Self.keptFrames else {
                return close(.policy, "too_many_frames: wait for the answer to hello")
            }
            state = .closed
            identifying.kept.append(frame)
            state = .identifying(identifying)
            return []
        case .open:
            return withOpen { Self.received(frame, in: &$0) }
        }
    }

    /// The client sent data that is not a valid frame.
    package mutating func receivedInvalidFrame(_ code: CloseCode, _ reason: String) -> [Action] { close(code, reason) }

    /// The client sent bytes. Any bytes count as a sign of life.
    package mutating func receivedSignOfLife() { awaitsSignOfLife = false }

    private static func received(_ frame: ClientFrame, in open: inout Open) -> [Action] {
        switch frame {
        case .hello:
            return [.close(.protocolError, "hello_repeated: send hello once for each connection")]
        case .ping:
            return [.send(.pong)]
        case .unknown(let type):
            // Clients of Mozilla's protocol can use frames that this server does not support. A Carillon client states the
            // version that it speaks.
            guard open.isCarillon else { return [] }
            return [.close(.protocolError, "frame_unknown: the messageType \"\(type)\" does not exist")]
        case .broadcastSubscribe(let ids):
            return [.send(.unknownBroadcasts(ids))]
        case .request where open.version < Self.asksSince && !open.supportsServices:
            return open.isCarillon
                ? [.close(.protocolError, "frame_unknown: send hello with \"carillon\": \(Self.asksSince) first")] : []
        case .register, .unregister, .request:
            open.requestBytes += frame.waitingBytes
            guard open.requests.count < Self.queuedRequests, open.requestBytes <= Self.queuedRequestBytes else {
                return [.close(.policy, "too_many_requests: wait for answers")]
            }
            open.requests.append(frame)
            return performNext(in: &open)
        case .ack(let updates):
            guard updates.count <= Limits.resultsPerRequest else {
                return [.close(.policy, "too_many_updates: send at most \(Limits.resultsPerRequest) in one ack")]
            }
            return updates.flatMap { update in
                let isDelivered = (update.code ?? ResultCode.delivered) == ResultCode.delivered
                return finished(update.version, isDelivered ? .acknowledged : .failed, update.code, in: &open)
            }
        case .nack(let version, let code):
            return finished(version, .failed, code ?? ResultCode.other, in: &open)
        }
    }

    private static func finished(_ version: String, _ outcome: Outcome, _ code: Int?, in open: inout Open) -> [Action] {
        guard let device = open.device, let id = MessageID(version) else { return [] }
        return [.finish(id, device, outcome, code: code)]
            + deliver(open.delivery.finished(id), to: device, isCarillon: open.isCarillon)
    }

    private static func performNext(in open: inout Open) -> [Action] {
        var actions: [Action] = []
        while !open.isOutputPaused, let request = open.requests.first, open.mayPerform(request) {
            open.requests.removeFirst()
            open.requestBytes -= request.waitingBytes
            switch request {
            case .register(let register):
                guard let id = ChannelID(register.channelID) else { return actions + [badChannelID] }
                actions.append(.perform(.register(open.owner, id, register)))
            case .unregister(let channelID, _):
                guard let id = ChannelID(channelID) else { return actions + [badChannelID] }
                actions.append(.perform(.unregister(open.owner, id, asWritten: channelID)))
            case .request(let request): actions.append(.perform(.ask(open.owner, request)))
            default: continue
            }
            open.isPerformingAlone = !request.isIndependent
            open.performing += 1
        }
        return actions
    }

    private static let badChannelID = Action.close(
        .protocolError, "channel_id_invalid: a channelID must be a UUID with dashes")

    // MARK: Results of the connection's handler

    /// - Parameters:
    ///   - page: The page that was read of the device's inbox. The session was notified of each later change.
    ///   - reported: The revisions of the device's reports that the server has.
    package mutating func identified(
        _ identity: Identity, _ page: InboxPage = .unread, reported: ReportedRevisions = .none, at now: Timestamp
    ) -> [Action] {
        guard case .identifying(let identifying) = state else { return [] }
        var open = Open(
            owner: identity.owner, version: identifying.version, delivery: identifying.delivery,
            isOutputPaused: isOutputPaused, supportsServices: identifying.supportsServices)
        let extensions =
            open.isCarillon
            ? ServerFrame.Hello.Carillon(
                version: open.version, keepAliveSeconds: settings.keepAliveSeconds, server: settings.server?.description,
                history: settings.history, deviceRevision: reported.device, servicesRevision: reported.services,
                also: open.supportsServices && open.version < Self.hearsServicesSince ? ["services"] : [])
            : nil
        var actions: [Action] = [.send(.hello(.init(uaid: identity.uaid, carillon: extensions)))]
        if let device = open.device {
            if isOutputPaused { open.delivery.outputPaused() }
            actions += Self.deliver(open.delivery.loaded(.page(page), at: now), to: device, isCarillon: open.isCarillon)
        } else {
            // Delivery begins with the first channel.
            open.delivery = DeliveryMachine(limits: settings.window, version: open.version)
        }
        state = .open(open)
        for frame in identifying.kept { actions += received(frame) }
        return actions
    }

    package mutating func identificationRefused(_ code: CloseCode, _ reason: String) -> [Action] { close(code, reason) }

    package mutating func answered(_ answer: Answer) -> [Action] {
        withOpen { open in
            open.performing -= 1
            var actions: [Action] = []
            switch answer {
            case .registered(let asWritten, let endpoint, let device):
                if case .provisional(let userAgent) = open.owner {
                    open.owner = .device(device)
                    var load = open.delivery.began()
                    if open.isOutputPaused {
                        open.delivery.outputPaused()
                        // The page is loaded when the peer reads.
                        load.limit = 0
                    }
                    actions.append(.arrive(userAgent, device, load, speaking: open.version))
                }
                actions.append(.send(.registered(channelID: asWritten, endpoint: endpoint)))
            case .registrationRefused(let asWritten, let refusal):
                actions.append(
                    .send(.registrationRefused(channelID: asWritten, refusal, isCarillon: open.isCarillon)))
            case .unregistered(let asWritten):
                actions.append(.send(.unregistered(channelID: asWritten)))
            case .unregistrationFailed(let asWritten):
                actions.append(.send(.unregistrationFailed(channelID: asWritten)))
            case .asked(let answer):
                if open.late.remove(answer.id) == nil { actions.append(.send(.answer(answer))) }
            }
            return actions + Self.performNext(in: &open)
        }
    }

    /// A request takes too long. It is answered with a refusal now, and continues.
    package mutating func isLate(_ refusal: ServerFrame.Answer) -> [Action] {
        withOpen { open in
            open.late.insert(refusal.id)
            return [.send(.answer(refusal))]
        }
    }

    package mutating func loaded(_ read: InboxRead, at now: Timestamp) -> [Action] {
        withDelivery { $0.loaded(read, at: now) }
    }

    package mutating func loadFailed(_ fault: StoreFault) -> [Action] { withDelivery { $0.loadFailed(fault) } }

    // MARK: Changes of the inbox

    package mutating func offered(_ envelope: Envelope, isVolatile: Bool, at now: Timestamp) -> [Action] {
        let actions = withDelivery { $0.offered(envelope, isVolatile: isVolatile, at: now) }
        return actions.isEmpty && isVolatile ? [.answerOffer(wasAccepted: false)] : actions
    }

    package mutating func storedMore(at now: Timestamp) -> [Action] { withDelivery { $0.storedMore(at: now) } }

    package mutating func withdrew(_ withdrawal: DeliveryMachine.Withdrawal) -> [Action] {
        withDelivery { $0.withdrew(withdrawal) }
    }

    /// See ``DeliveryMachine/moving()``.
    package mutating func moving() {
        _ = withDelivery { delivery in
            delivery.moving()
            return []
        }
    }

    /// See ``DeliveryMachine/moved(at:)``.
    package mutating func moved(at now: Timestamp) -> [Action] { withDelivery { $0.moved(at: now) } }

    /// See ``DeliveryMachine/arrivedAgain(at:)``. The providers can have changed meanwhile.
    package mutating func arrivedAgain(at now: Timestamp) -> [Action] {
        let actions = withDelivery { $0.arrivedAgain(at: now) }
        return actions + providersChanged()
    }

    /// The device acknowledged or rejected envelopes over another connection.
    package mutating func finishedElsewhere(_ ids: [MessageID]) -> [Action] {
        withDelivery { delivery in ids.flatMap { delivery.finished($0) } }
    }

    /// The service providers of the device's user have changed. One frame reports all changes until it is sent.
    package mutating func providersChanged() -> [Action] {
        withOpen { open in
            guard open.supportsServices else { return [] }
            open.owesProviders = true
            return Self.notifyProviders(in: &open)
        }
    }

    private static func notifyProviders(in open: inout Open) -> [Action] {
        guard open.owesProviders, !open.isOutputPaused else { return [] }
        open.owesProviders = false
        return [.send(.providersChanged)]
    }

    // MARK: Whether the peer reads

    /// The peer does not read the sent data. No envelope is delivered and no request is performed until it does.
    package mutating func outputPaused() {
        isOutputPaused = true
        guard case .open(var open) = state else { return }
        state = .closed
        open.isOutputPaused = true
        // A client without a device has nothing to load yet.
        if open.device != nil { open.delivery.outputPaused() }
        state = .open(open)
    }

    package mutating func outputResumed(at now: Timestamp) -> [Action] {
        isOutputPaused = false
        return withOpen { open in
            open.isOutputPaused = false
            var actions: [Action] = []
            if let device = open.device {
                actions = Self.deliver(open.delivery.outputResumed(at: now), to: device, isCarillon: open.isCarillon)
            }
            return actions + Self.notifyProviders(in: &open) + Self.performNext(in: &open)
        }
    }

    /// The peer read too little of the sent data for too long.
    package mutating func outputStalled() -> [Action] {
        close(.outputStalled, "output_stalled: the client does not read what the server sends")
    }

    // MARK: The end

    package mutating func ended(because reason: SessionEnd) -> [Action] {
        switch reason {
        case .replaced: close(.replaced, "replaced: the device opened a newer connection")
        case .deviceGone: close(.gone, Self.goneReason)
        case .serverStops, .moved: sentGoodbye(.restart, "restart: connect again later")
        case .storageUnavailable:
            sentGoodbye(.tryLater, "storage_unavailable: cannot store acknowledgements; their messages are sent again")
        case .linkLost: sentGoodbye(.restart, "link_lost: connect again later")
        }
    }

    private mutating func sentGoodbye(_ code: CloseCode, _ reason: String) -> [Action] {
        let closing: [Action]
        if case .open(let open) = state, open.isCarillon {
            closing = [.send(.goodbye(delaySeconds: Self.comeBackSeconds))]
        } else {
            closing = []
        }
        return closing + close(code, reason)
    }

    /// The delay in seconds after which clients should reconnect after a goodbye. Each client adds its own jitter.
    private static let comeBackSeconds = 1

    /// The time limit for `hello` is over.
    package mutating func helloTimedOut() -> [Action] {
        guard isAwaitingHello else { return [] }
        return close(.policy, "hello_timeout: no hello arrived in time")
    }

    /// The client sent nothing for the keep-alive interval.
    package mutating func wasSilent() -> [Action] {
        if case .closed = state { return [] }
        if awaitsSignOfLife { return close(.keepAliveTimeout, "keep_alive_timeout: no pong arrived in time") }
        awaitsSignOfLife = true
        return [.ping]
    }

    /// The connection ended. Envelopes of TTL 0 that were delivered and not answered are lost.
    package mutating func disconnected() -> [Action] {
        guard case .open(var open) = state, let device = open.device else {
            state = .closed
            return []
        }
        state = .closed
        return Self.deliver(open.delivery.disconnected(), to: device, isCarillon: open.isCarillon)
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

    /// Passes an event to the delivery machine of a device that is connected, or is being identified.
    private mutating func withDelivery(_ body: (inout DeliveryMachine) -> [DeliveryMachine.Action]) -> [Action] {
        if case .identifying(var identifying) = state {
            state = .closed
            // The delivery machine waits for its first load, so it returns no action.
            _ = body(&identifying.delivery)
            state = .identifying(identifying)
            return []
        }
        return withOpen { open in
            guard let device = open.device else { return [] }
            return Self.deliver(body(&open.delivery), to: device, isCarillon: open.isCarillon)
        }
    }

    /// Converts actions of delivery to frames and actions of the session.
    private static func deliver(
        _ actions: [DeliveryMachine.Action], to device: DeviceSerial, isCarillon: Bool
    ) -> [Action] {
        actions.compactMap { action in
            switch action {
            case .deliver(let envelope): .send(ServerFrame(envelope))
            case .load(let load): .load(load, device)
            case .caughtUp: isCarillon ? .send(.caughtUp) : nil
            case .answerOffer(let wasAccepted): .answerOffer(wasAccepted: wasAccepted)
            case .finish(let id, let outcome): .finish(id, device, outcome, code: nil)
            case .end(.deviceGone): .close(.gone, goneReason)
            case .end(.failed): .close(.internalError, "storage_unavailable: connect again later")
            }
        }
    }

    private static let goneReason = "gone: the device was deleted"
}

extension ClientFrame {
    /// Whether the request can be performed at the same time as others of its kind. Requests about one service request do not
    /// affect another service request.
    fileprivate var isIndependent: Bool {
        if case .request(let request) = self { request.path.hasPrefix("/v1/services/") } else { false }
    }

    /// The approximate size in bytes of a waiting request.
    fileprivate var waitingBytes: Int {
        switch self {
        case .register(let register):
            100 + register.channelID.utf8.count + (register.key?.utf8.count ?? 0) + (register.name?.utf8.count ?? 0)
                + (register.wake?.utf8.count ?? 0)
        case .unregister(let channelID, _): 100 + channelID.utf8.count
        case .request(let request): 100 + request.method.utf8.count + request.path.utf8.count + request.body.count
        default: 0
        }
    }
}
