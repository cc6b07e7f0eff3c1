import CarillonCore
import CarillonWire
import Logging
import Metrics
import NIOCore

/// One client's socket. Passes events to a ``SessionMachine`` and performs the actions that it returns.
///
/// `@unchecked Sendable`: the state is used only on the event loop. The calls of ``LiveSession``, which can come from any thread,
/// only switch to the event loop. Debug builds check this.
final class SocketHandler: ChannelInboundHandler, WheelMember, @unchecked Sendable {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// The objects that all sockets of a server share. A class, so that each socket stores one pointer.
    final class Shared: Sendable {
        let domain: Domain
        let settings: ServerSettings
        let sessionSettings: SessionMachine.Settings
        let identifier: SocketIdentifier
        let requests: SocketRequests
        let limit: ConnectionLimit

        init(
            domain: Domain, settings: ServerSettings, identifier: SocketIdentifier, requests: SocketRequests,
            limit: ConnectionLimit
        ) {
            self.domain = domain
            self.settings = settings
            self.identifier = identifier
            self.requests = requests
            self.limit = limit
            sessionSettings = SessionMachine.Settings(
                window: settings.window, keepAliveSeconds: settings.keepAliveSeconds, server: domain.server,
                history: domain.historyName)
        }
    }

    private let shared: Shared
    private let loop: LoopContext
    private let eventLoop: any EventLoop
    private let forwardedFor: NetworkAddress?
    /// The address for which the socket is counted.
    private let address: NetworkAddress?
    private let quotas: ConnectionQuotas
    private var machine: SessionMachine
    private var reader = MessageReader()
    private var context: ChannelHandlerContext?
    /// The device whose envelopes this session receives.
    private var joined: DeviceSerial?
    /// Set with the first request.
    private var requester: RequestingDevice?
    private var offerAnswers: [@Sendable (Bool) -> Void] = []
    private var lastHeard = 0
    /// The bytes of frames that were written.
    private var written = 0
    private var stall = StallClock()
    private var isClosing = false
    private var meter = FrameMeter()
    /// The reserved memory of the next frame, which is released when the peer has received the frame.
    private var placeOfNext: AnswerReservation?
    /// Whether reading is paused because the client sent too many frames.
    private var isMetered = false
    var place: ConnectionWheel.Place?

    /// - Parameters:
    ///   - forwardedFor: The address of the client, if a proxy reports it.
    ///   - address: The address for which the socket is already counted in the quotas. The socket ends this count.
    init(
        shared: Shared, loop: LoopContext, eventLoop: any EventLoop, forwardedFor: NetworkAddress?, address: NetworkAddress?,
        quotas: ConnectionQuotas
    ) {
        self.shared = shared
        self.address = address
        self.quotas = quotas
        self.forwardedFor = forwardedFor
        self.loop = loop
        self.eventLoop = eventLoop
        machine = SessionMachine(settings: shared.sessionSettings)
    }

    // MARK: The channel

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        shared.limit.opened()
        lastHeard = loop.wheel.value.now
        loop.wheel.value.insert(self, afterSeconds: shared.settings.helloTimeoutSeconds)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        guard self.context != nil else { return }
        self.context = nil
        shared.limit.closed()
        if let address { quotas.sockets.release(address) }
        FreedMemory.add(FreedMemory.bytesOfConnection)
        loop.wheel.value.remove(self)
        perform(machine.disconnected())
        leave()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        lastHeard = loop.wheel.value.now
        machine.receivedSignOfLife()
        reader.received(Self.unwrapInboundIn(data))
        readFrames(context)
    }

    /// Counts all frames against the rate limit, independent of their content and effect.
    private func readFrames(_ context: ChannelHandlerContext) {
        guard !isMetered else { return }
        let now = shared.domain.ticks.now()
        while true {
            let event = reader.next()
            if let event { received(event, context) }
            let frames = reader.takeFrameCount()
            if frames > 0, let rate = shared.settings.frameRate, let wait = meter.count(frames, of: rate, at: now) {
                return pauseReading(nanoseconds: wait)
            }
            guard event != nil else { return }
        }
    }

    /// Pauses reading. If the socket has ended when the pause is over, nothing happens.
    private func pauseReading(nanoseconds: Int64) {
        isMetered = true
        framePauses.increment()
        mindReading()
        let pause = TimeAmount.nanoseconds(max(nanoseconds, Self.shortestPause))
        eventLoop.assumeIsolated().scheduleTask(in: pause) {
            guard let context = self.context else { return }
            self.isMetered = false
            self.readFrames(context)
            if !self.isMetered { self.mindReading() }
        }
    }

    private static let shortestPause: Int64 = 20_000_000

    private func mindReading() {
        guard let channel = context?.channel else { return }
        let isReading = !isMetered && (channel.isWritable || isClosing)
        channel.setOption(.autoRead, value: isReading).whenFailure { _ in }
    }

    private func received(_ event: MessageReader.Event, _ context: ChannelHandlerContext) {
        switch event {
        case .pong:
            break
        case .ping(let data):
            guard !isClosing else { break }
            write(.pong, data.readableBytesView)
            context.flush()
        case .close(let code):
            closed(byPeerWith: code, context)
        case .fault(let code, let reason):
            perform(machine.receivedInvalidFrame(code, reason))
        case .text(let bytes):
            do {
                perform(machine.received(try ClientFrame(parsing: bytes)))
            } catch {
                perform(machine.receivedInvalidFrame(.protocolError, error.reason))
            }
        }
    }

    /// If a client does not read, no more frames are sent to it or read from it, so that answers do not accumulate here.
    func channelWritabilityChanged(context: ChannelHandlerContext) {
        let isWritable = context.channel.isWritable
        mindReading()
        if isWritable {
            lastHeard = loop.wheel.value.now
            machine.receivedSignOfLife()
            perform(machine.outputResumed(at: shared.domain.time.now()))
        } else {
            machine.outputPaused()
            watchOutput()
        }
        context.fireChannelWritabilityChanged()
    }

    private var progress: OutputProgress {
        let waiting = context.flatMap { try? $0.channel.syncOptions?.getOption(.bufferedWritableBytes) } ?? 0
        return .init(sent: written - waiting, waiting: waiting)
    }

    /// Starts the time limit within which the peer must read.
    private func watchOutput() {
        guard context != nil, !isClosing, stall.deadline == nil else { return }
        let wheel = loop.wheel.value
        stall.started(progress, at: wheel.now, periodSeconds: shared.settings.stallSeconds)
        guard !machine.isAwaitingHello, let deadline = stall.deadline else { return }
        wheel.remove(self)
        wheel.insert(self, afterSeconds: deadline - wheel.now)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case let event as ChannelEvent where event == .inputClosed:
            context.close(promise: nil)
        case is ChannelShouldQuiesceEvent:
            end(because: .serverStops)
        default:
            context.fireUserInboundEventTriggered(event)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    private func closed(byPeerWith code: UInt16?, _ context: ChannelHandlerContext) {
        if !isClosing {
            isClosing = true
            write(.close, code?.bigEndianBytes ?? [])
        }
        context.flush()
        context.close(promise: nil)
    }

    // MARK: Silence

    func wheelTurned(at second: Int) -> Int? {
        guard let context, !isClosing else { return nil }
        if machine.isAwaitingHello {
            perform(machine.helloTimedOut())
            return nil
        }
        let stallSeconds = shared.settings.stallSeconds
        if stall.isStalled(progress, at: second, periodSeconds: stallSeconds) {
            perform(machine.outputStalled())
            return nil
        }
        stall.started(progress, at: second, periodSeconds: stallSeconds)
        let untilStall = stall.deadline.map { max(1, $0 - second) } ?? .max
        // While much data is waiting, only the peer's reading is checked, because a ping would wait after the data.
        guard context.channel.isWritable else { return untilStall }
        let heard = second - lastHeard
        guard heard >= shared.settings.keepAliveSeconds else {
            return min(shared.settings.keepAliveSeconds - heard, untilStall)
        }
        perform(machine.wasSilent())
        return isClosing ? nil : min(shared.settings.keepAliveAnswerSeconds, untilStall)
    }

    // MARK: Actions of the machine

    private func perform(_ actions: [SessionMachine.Action]) {
        eventLoop.assertInEventLoop()
        guard !actions.isEmpty else { return }
        for action in actions { perform(action) }
        context?.flush()
    }

    private func perform(_ action: SessionMachine.Action) {
        switch action {
        case .send(let frame):
            write(.text, frame.written(at: shared.domain.time.now().milliseconds).text)
        case .identify(let hello, let load):
            identify(hello, load)
        case .arrive(let userAgent, let device, let load, let version):
            arrive(userAgent, device, load, speaking: version)
        case .load(let load, let device):
            self.load(load, device)
        case .perform(let request):
            perform(request)
        case .finish(let id, let device, let outcome, let code):
            shared.domain.homes.home(of: device).finish(EnvelopeAnswer(id, outcome, code: code), of: device)
        case .answerOffer(let wasAccepted):
            if !offerAnswers.isEmpty { offerAnswers.removeFirst()(wasAccepted) }
        case .ping:
            write(.ping, [])
        case .close(let code, let reason):
            close(code, reason)
        }
    }

    private func write(_ opcode: WebSocketFrameHeader.Opcode, _ payload: some Collection<UInt8>) {
        guard let context else { return }
        let frame = WebSocketFrameHeader.frame(opcode, payload, context.channel.allocator)
        written += frame.readableBytes
        let isOut = placeOfNext.map { place in
            let isOut = eventLoop.makePromise(of: Void.self)
            isOut.futureResult.whenComplete { _ in place.release() }
            return isOut
        }
        placeOfNext = nil
        context.write(Self.wrapOutboundOut(frame), promise: isOut)
    }

    private func close(_ code: CloseCode, _ reason: String) {
        guard let context, !isClosing else { return }
        isClosing = true
        closes[code]?.increment()
        leave()
        guard code != .outputStalled else { return context.close(promise: nil) }
        write(.close, code.payload(reason))
        context.flush()
        // The peer reads to the end of the stream and answers with its own close frame. If it does not, the server closes the
        // connection after 2 seconds.
        mindReading()
        context.close(mode: .output, promise: nil)
        eventLoop.assumeIsolated().scheduleTask(in: .seconds(2)) { self.context?.close(promise: nil) }
    }

    /// Ends the delivery of envelopes to this session.
    private func leave() {
        if let joined { shared.domain.homes.home(of: joined).leave(self, of: joined) }
        joined = nil
        for answer in offerAnswers { answer(false) }
        offerAnswers = []
    }

    // MARK: Asynchronous work

    private func identify(_ hello: ClientFrame.Hello, _ load: PageRequest) {
        let (identifier, time) = (shared.identifier, shared.domain.time)
        if let identity = identifier.identifyNewcomer(hello) {
            return perform(machine.identified(identity, at: time.now()))
        }
        start { [self] in
            await identifier.identify(hello, load, as: self)
        } then: { handler, result in
            switch result {
            case .success(let identified):
                if case .device(let device) = identified.identity.owner { handler.joined = device }
                // The socket can have closed meanwhile.
                if handler.context == nil || handler.isClosing { return handler.leave() }
                handler.perform(
                    handler.machine.identified(
                        identified.identity, identified.page, reported: identified.reported, at: time.now()))
            case .failure(let refusal):
                handler.perform(handler.machine.identificationRefused(refusal.code, refusal.reason))
            }
        }
    }

    /// Connects the device of a client that was stored with its first channel.
    private func arrive(
        _ userAgent: UserAgentID, _ device: DeviceSerial, _ load: PageRequest, speaking version: Int
    ) {
        let (identifier, time) = (shared.identifier, shared.domain.time)
        start { [self] in
            await identifier.arrive(userAgent, load, speaking: version, as: self)
        } then: { handler, arrived in
            switch arrived {
            case .device(let arrived):
                handler.joined = arrived.device.serial
                // The socket can have closed meanwhile, or the device can have been deleted and stored again.
                let isGone = arrived.device.serial != device
                if handler.context == nil || handler.isClosing || isGone { handler.leave() }
                let read = isGone ? InboxRead.deviceGone : .page(arrived.page)
                handler.perform(handler.machine.loaded(read, at: time.now()))
            case .unknownDevice: handler.perform(handler.machine.loaded(.deviceGone, at: time.now()))
            case .failed(let fault): handler.perform(handler.machine.loadFailed(fault))
            }
        }
    }

    private func load(_ load: PageRequest, _ device: DeviceSerial) {
        let domain = shared.domain
        start {
            await domain.homes.load(load, of: device, logger: domain.logger)
        } then: { handler, result in
            switch result {
            case .success(let read): handler.perform(handler.machine.loaded(read, at: domain.time.now()))
            case .failure(let fault): handler.perform(handler.machine.loadFailed(fault))
            }
        }
    }

    private func perform(_ request: SessionMachine.Request) {
        guard let channel = context?.channel else { return }
        let requests = shared.requests
        let address = forwardedFor ?? NetworkAddress(channel.remoteAddress)
        let requester = requester ?? RequestingDevice()
        self.requester = requester
        let refusal = refusalWhenLate(request)
        start {
            await requests.perform(request, by: requester, from: address, on: channel)
        } then: { handler, performed in
            refusal?.cancel()
            handler.placeOfNext = performed.place
            handler.perform(handler.machine.answered(performed.answer))
            handler.placeOfNext = nil
        }
    }

    private func refusalWhenLate(_ request: SessionMachine.Request) -> Scheduled<Void>? {
        guard case .ask(_, let question) = request else { return nil }
        let seconds = shared.settings.requests.answerSeconds
        return eventLoop.assumeIsolated().scheduleTask(in: .seconds(Int64(seconds))) {
            self.perform(self.machine.isLate(.init(to: question.id, .notFinished(inSeconds: seconds))))
        }
    }

    /// Runs the work in a task on this event loop, and passes its result to `then` there. The task ends with the work.
    private func start<Value: Sendable>(
        _ work: @escaping @Sendable () async -> Value, then: @escaping @Sendable (SocketHandler, Value) -> Void
    ) {
        Task(executorPreference: loop.executor) {
            let value = await work()
            self.onLoop { then($0, value) }
        }
    }

    private func onLoop(_ work: @escaping @Sendable (SocketHandler) -> Void) {
        if eventLoop.inEventLoop {
            work(self)
        } else {
            eventLoop.execute { work(self) }
        }
    }
}

private let framePauses = ServerMetric.framePauses.counter()

/// Counts the sockets that the server closed, by code.
private let closes = Dictionary(
    uniqueKeysWithValues: CloseCode.allCases.map { code in
        (code, ServerMetric.socketCloses.counter(String(code.rawValue)))
    })

extension SocketHandler: LiveSession {
    var executor: (any TaskExecutor)? { loop.executor }

    func offer(_ envelope: Envelope) {
        eventLoop.execute {
            self.perform(self.machine.offered(envelope, isVolatile: false, at: self.shared.domain.time.now()))
        }
    }

    func offerVolatile(_ envelope: Envelope, answer: @escaping @Sendable (Bool) -> Void) {
        eventLoop.execute {
            guard self.context != nil, !self.isClosing else { return answer(false) }
            self.offerAnswers.append(answer)
            self.perform(self.machine.offered(envelope, isVolatile: true, at: self.shared.domain.time.now()))
        }
    }

    func storedMore() {
        eventLoop.execute { self.perform(self.machine.storedMore(at: self.shared.domain.time.now())) }
    }

    func withdrew(_ withdrawal: DeliveryMachine.Withdrawal, done: @escaping @Sendable () -> Void) {
        eventLoop.execute {
            self.perform(self.machine.withdrew(withdrawal))
            done()
        }
    }

    func finished(_ ids: [MessageID]) {
        eventLoop.execute { self.perform(self.machine.finishedElsewhere(ids)) }
    }

    func providersChanged() { eventLoop.execute { self.perform(self.machine.providersChanged()) } }

    func moving(done: @escaping @Sendable () -> Void) {
        eventLoop.execute {
            self.machine.moving()
            done()
        }
    }

    func moved(_ end: MoveEnd) { eventLoop.execute { self.hasMoved(end) } }

    private func hasMoved(_ end: MoveEnd) {
        let time = shared.domain.time
        switch end {
        case .stays: perform(machine.moved(at: time.now()))
        case .gone: perform(machine.ended(because: .moved))
        case .arrives(let again):
            guard context != nil, !isClosing else { return }
            guard let device = machine.device ?? joined else {
                // The device arrived at the former home before it moved, and the answer of that home has not arrived yet.
                eventLoop.assumeIsolated().scheduleTask(in: Self.untilIdentified) { self.hasMoved(end) }
                return
            }
            start {
                await again()
            } then: { handler, arrived in
                // The session left meanwhile, possibly before it arrived.
                if handler.context == nil || handler.isClosing {
                    return handler.shared.domain.homes.home(of: device).leave(handler, of: device)
                }
                switch arrived {
                case .joined:
                    // The answer of the former home can have been lost.
                    handler.joined = device
                    handler.perform(handler.machine.arrivedAgain(at: time.now()))
                case .deviceGone: handler.perform(handler.machine.ended(because: .deviceGone))
                case .failed(let fault): handler.perform(handler.machine.loadFailed(fault))
                }
            }
        }
    }

    private static let untilIdentified = TimeAmount.milliseconds(10)

    func end(because reason: SessionEnd) {
        // When the server stops, closings are distributed over time, so that clients do not reconnect all at once.
        let delay: TimeAmount =
            reason == .serverStops
            ? shared.limit.closingDelay(withinSeconds: shared.settings.stopSeconds / 2) : .zero
        eventLoop.scheduleTask(in: delay) { self.perform(self.machine.ended(because: reason)) }
    }
}
