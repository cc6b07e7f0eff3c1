import CarillonCore
import CarillonWire
import Logging
import Metrics
import NIOCore
import NIOHTTP1

/// One HTTP connection. Passes events to a ``RequestMachine`` and performs the actions that it returns. A task exists only while
/// the routes answer a request. After a WebSocket handshake, a ``SocketHandler`` replaces this handler.
///
/// `@unchecked Sendable`: the state is used only on the event loop. Calls from other threads switch to it first.
final class HTTPConnectionHandler: ChannelInboundHandler, RemovableChannelHandler, WheelMember, @unchecked Sendable {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    /// The objects that all connections of a server share. A class, so that each connection stores one pointer.
    final class Shared: Sendable {
        let routes: RouteCall
        let publishHandler: PublishHandler
        let sockets: SocketHandler.Shared
        let clientAddress: ClientAddress
        let limit: ConnectionLimit
        let quotas: ConnectionQuotas
        let settings: RequestMachine.Settings
        let sharing: CrossOriginSharing

        init(
            routes: RouteCall, publishHandler: PublishHandler, sockets: SocketHandler.Shared, clientAddress: ClientAddress,
            limit: ConnectionLimit, quotas: ConnectionQuotas, settings: RequestMachine.Settings,
            sharing: CrossOriginSharing
        ) {
            self.routes = routes
            self.publishHandler = publishHandler
            self.sockets = sockets
            self.clientAddress = clientAddress
            self.limit = limit
            self.quotas = quotas
            self.settings = settings
            self.sharing = sharing
        }
    }

    private let shared: Shared
    private let loop: LoopContext
    private let eventLoop: any EventLoop
    private var machine: RequestMachine
    private var context: ChannelHandlerContext?
    private var task: Task<Void, Never>?
    /// The body of the present request, if it is streamed.
    private var stream: RequestStream?
    private var isReading = true
    private var isTakingBuffered = false
    private var wheelSecond = Int.max
    /// The bytes of response bodies that were written.
    private var written = 0
    private var isPatient = false
    /// Whether the peer has ended its side of the connection.
    private var hasPeerEnded = false
    /// The refusal of a connection beyond a limit. Its request is refused, and the connection is closed.
    private var refusal: Refusal?
    /// The address and the device for which the connection is counted.
    let usage: ConnectionUsage
    /// The present request, if it waits for changes of an inbox, and the second in which the wait ends.
    private var poll: WaitingPoll?
    private var pollEnd: Int?
    /// The CORS headers of the response.
    private var terms: CrossOriginSharing.Terms?
    private let counter: InboundByteCounter
    var place: ConnectionWheel.Place?

    /// - Parameter counter: The handler that is in front of the parser.
    init(shared: Shared, loop: LoopContext, eventLoop: any EventLoop, counter: InboundByteCounter) {
        self.shared = shared
        self.loop = loop
        self.eventLoop = eventLoop
        self.counter = counter
        usage = ConnectionUsage(of: shared.quotas)
        machine = RequestMachine(
            settings: shared.settings, origins: shared.sharing.origins, at: loop.wheel.value.now)
        shared.limit.opened()
    }

    private var now: Int { loop.wheel.value.now }

    // MARK: The channel

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        mindTime()
    }

    func channelActive(context: ChannelHandlerContext) {
        if shared.limit.isOverfull {
            found(.ofServer, .serverFull)
        } else if let refusal = usage.opened(from: NetworkAddress(context.remoteAddress)) {
            found(.ofAddress, refusal)
        }
        context.fireChannelActive()
    }

    /// The connection exceeds a limit.
    private func found(_ place: ConnectionQuotas.RefusedPlace, _ refusal: Refusal) {
        self.refusal = refusal
        shared.limit.closed()
        guard usage.takeRefusedPlace(place) else {
            countRefusal()
            context?.close(promise: nil)
            return
        }
        machine.foundNoPlace(refusal, at: now)
        mindTime()
    }

    private func countRefusal() {
        if refusal?.code == .overloaded { shared.limit.refused() }
    }

    func handlerRemoved(context: ChannelHandlerContext) { leave() }

    func channelInactive(context: ChannelHandlerContext) {
        leave()
        context.fireChannelInactive()
    }

    private func leave() {
        guard context != nil else { return }
        context = nil
        if refusal == nil { shared.limit.closed() }
        usage.closed()
        poll?.end()
        poll = nil
        FreedMemory.add(FreedMemory.bytesOfConnection)
        loop.wheel.value.remove(self)
        stream?.end(Refusal(.bodyIncomplete, "The connection ended."))
        task?.cancel()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        perform(machine.received(Self.unwrapInboundIn(data), admitsSocket: shared.sockets.limit.admits))
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        perform(machine.readCompleted(at: now, bytes: counter.take()))
        settle()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        machine.writabilityChanged(context.channel.isWritable)
        if context.channel.isWritable { takeBuffered() }
        settle()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case let event as ChannelEvent where event == .inputClosed:
            perform(machine.inputEnded(at: now))
            hasPeerEnded = true
            // A client that waits for changes has most likely closed the connection.
            if isPatient { task?.cancel() }
            recheck(isLast: true)
        case is ChannelShouldQuiesceEvent: perform(machine.stopped(at: now))
        default: break
        }
        settle()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        perform(machine.received(error, at: now))
        settle()
    }

    func wheelTurned(at second: Int) -> Int? {
        guard context != nil else { return nil }
        wheelSecond = .max
        perform(machine.timePassed(to: second, progress))
        if let pollEnd, pollEnd <= second { recheck(isLast: true) }
        guard context != nil, place == nil, let deadline = nextDeadline else { return nil }
        wheelSecond = max(deadline, second + 1)
        return wheelSecond - second
    }

    // MARK: Actions of the machine

    private func perform(_ action: RequestMachine.Action) {
        switch action {
        case .none:
            break
        case .sendContinue:
            let interim = HTTPResponseHead(version: .http1_1, status: .continue)
            context?.writeAndFlush(Self.wrapOutboundOut(.head(interim)), promise: nil)
        case .answer(let request):
            ask(request)
        case .stream(let head):
            ask(streamed: head)
        case .streamed(let bytes):
            if stream?.add(bytes) == true { machine.bodyFilled() }
        case .streamEnded:
            stream?.end()
        case .streamBroke(let refusal):
            stream?.end(refusal)
        case .refuse(let refusal):
            countRefusal()
            write(HTTPAnswer(refusal), connection: "close")
            end(machine.refused(at: now))
        case .upgrade(let head):
            upgrade(head)
        case .finish:
            if progress.waiting == 0 { context?.close(promise: nil) }
        case .close:
            context?.close(promise: nil)
        case .stalled:
            stalls.increment()
            context?.close(promise: nil)
        }
    }

    private var progress: OutputProgress {
        let waiting = context.flatMap { try? $0.channel.syncOptions?.getOption(.bufferedWritableBytes) } ?? 0
        return .init(sent: written - waiting, waiting: waiting)
    }

    /// Pauses or resumes reading, and sets the next time limit.
    private func settle() {
        guard let context else { return }
        if machine.wantsToRead != isReading {
            isReading = machine.wantsToRead
            context.channel.setOption(.autoRead, value: isReading).whenFailure { _ in }
        }
        mindTime()
    }

    private var nextDeadline: Int? {
        guard poll != nil, let pollEnd else { return machine.nextDeadline }
        return min(pollEnd, machine.nextDeadline ?? .max)
    }

    private func mindTime() {
        guard context != nil, let deadline = nextDeadline, deadline < wheelSecond else { return }
        loop.wheel.value.remove(self)
        wheelSecond = max(deadline, now + 1)
        loop.wheel.value.insert(self, afterSeconds: wheelSecond - now)
    }

    private func ask(_ request: RequestMachine.Request) {
        guard context != nil else { return }
        if let refusal, !usage.takeReserve() {
            countRefusal()
            return answer(HTTPAnswer(refusal))
        }
        terms = shared.sharing.terms(for: request.head)
        if let refusal = quotaRefusal(request.head) { return answer(HTTPAnswer(refusal)) }
        if let preflight = shared.sharing.preflight(request.head) { return answer(preflight) }
        if request.head.method == .POST, let token = PublishHandler.token(of: request.head.uri) {
            shared.publishHandler.publish(request, to: token, on: loop.executor) { answer in
                self.onLoop { $0.answer(answer) }
            }
            return
        }
        guard let channel = context?.channel else { return }
        isPatient = request.head.method == .GET || request.head.method == .HEAD
        // The task ends with the answer. `leave()` cancels it if the connection ends first.
        task = Task(executorPreference: loop.executor) { [shared] in
            await shared.routes.answer(request, on: channel, to: self)
        }
    }

    private func ask(streamed head: HTTPRequestHead) {
        guard let channel = context?.channel else { return }
        terms = shared.sharing.terms(for: head)
        if let refusal = quotaRefusal(head) { return answer(HTTPAnswer(refusal)) }
        let stream = RequestStream(
            onWanted: { [weak self] in self?.onLoop { $0.perform($0.machine.bodyWanted()) } },
            onTaken: { [weak self] in
                self?.onLoop { handler in
                    handler.machine.bodyTaken(at: handler.now)
                    handler.settle()
                }
            })
        self.stream = stream
        isPatient = false
        // The task ends with the answer. `leave()` ends the body if the connection ends first.
        task = Task(executorPreference: loop.executor) { [shared] in
            await shared.routes.answer(head, stream, on: channel, to: self)
        }
    }

    /// Behind a proxy, counts the request for the address that the proxy reports.
    private func quotaRefusal(_ head: HTTPRequestHead) -> Refusal? {
        guard shared.quotas.isBehindProxy, !HealthRoutes.isHealthCheck(head) else { return nil }
        return usage.requestBegan(for: address(head))
    }

    private func address(_ head: HTTPRequestHead) -> NetworkAddress? {
        let forwarded = shared.clientAddress.forwarded(in: head.headers)
        if forwarded == .invalid {
            invalidAddresses.increment()
            shared.routes.logger.warning(
                "cannot read the client address that the proxy sends; using the proxy's address",
                metadata: ["field": "\(shared.clientAddress.header ?? "")"])
        }
        return forwarded?.address ?? NetworkAddress(context?.remoteAddress)
    }

    // MARK: A poll that waits

    private func wait(for found: WaitingPoll) {
        task = nil
        guard context != nil, machine.owesAnswer else { return found.end() }
        if pollEnd == nil { FreedMemory.add(FreedMemory.bytesOfRequest) }
        poll = found
        let end = pollEnd ?? now + found.waitSeconds
        pollEnd = end
        if hasPeerEnded || end <= now { return recheck(isLast: true) }
        mindTime()
        found.onChange { [weak self] in self?.onLoop { $0.recheck(isLast: false) } }
    }

    private func recheck(isLast: Bool) {
        guard let poll else { return }
        self.poll = nil
        // The task ends after one read. `leave()` cancels it if the connection ends first.
        task = Task(executorPreference: loop.executor) { [shared] in
            await shared.routes.answer(poll, isLast: isLast, to: self)
        }
    }

    private func onLoop(_ work: @escaping @Sendable (HTTPConnectionHandler) -> Void) {
        if eventLoop.inEventLoop {
            work(self)
        } else {
            eventLoop.execute { work(self) }
        }
    }

    // MARK: The answer

    /// - Parameter place: The reserved memory of the answer, which is released when the peer has received the answer.
    private func answer(_ answer: HTTPAnswer, _ place: AnswerReservation? = nil) {
        guard context != nil, machine.owesAnswer else { return }
        write(answer, connection: machine.answerBegan(hasLength: true), place)
        end(machine.answerEnded(at: now))
    }

    private func write(_ answer: HTTPAnswer, connection: String?, _ place: AnswerReservation? = nil) {
        guard let context else { return }
        var head = HTTPResponseHead(version: machine.version, status: answer.status, headers: answer.headers)
        if answer.status != .noContent, let length = answer.length, !head.headers.contains(name: "content-length") {
            head.headers.add(name: "content-length", value: String(length))
        }
        finish(&head, connection)
        context.write(Self.wrapOutboundOut(.head(head)), promise: nil)
        if answer.body.readableBytes > 0, !machine.isHead {
            written += answer.body.readableBytes
            let isOut = place.map { place in
                let isOut = eventLoop.makePromise(of: Void.self)
                isOut.futureResult.whenComplete { _ in place.release() }
                return isOut
            }
            context.write(Self.wrapOutboundOut(.body(.byteBuffer(answer.body))), promise: isOut)
        }
    }

    /// The end of an answer. An answer to HEAD has no further part: the end of a chunked body would be read as the next answer.
    private var answerEnd: HTTPServerResponsePart { machine.isHead ? .body(.byteBuffer(ByteBuffer())) : .end(nil) }

    private func finish(_ head: inout HTTPResponseHead, _ connection: String?) {
        if let connection { head.headers.replaceOrAdd(name: "connection", value: connection) }
        if let terms { head.headers.add(terms) }
        terms = nil
        head.headers.add(name: "date", value: loop.date.value.text)
    }

    private func end(_ end: RequestMachine.End) {
        task = nil
        stream = nil
        pollEnd = nil
        usage.requestEnded()
        guard let context else { return }
        switch end {
        case .open:
            context.writeAndFlush(Self.wrapOutboundOut(answerEnd), promise: nil)
            machine.wrote(progress, at: now)
            takeBuffered()
        case .flushed:
            let isOut = eventLoop.makePromise(of: Void.self)
            context.writeAndFlush(Self.wrapOutboundOut(answerEnd), promise: isOut)
            isOut.futureResult.assumeIsolated().whenComplete { _ in self.context?.close(promise: nil) }
            machine.wrote(progress, at: now)
        case .lingering:
            context.writeAndFlush(Self.wrapOutboundOut(answerEnd), promise: nil)
            context.close(mode: .output, promise: nil)
            machine.wrote(progress, at: now)
        }
        settle()
    }

    private func takeBuffered() {
        // An answer that is available at once calls this function again, from inside the loop.
        if isTakingBuffered { return }
        isTakingBuffered = true
        while let action = machine.bufferedAction(at: now, admitsSocket: shared.sockets.limit.admits) { perform(action) }
        isTakingBuffered = false
    }

    // MARK: Leaving HTTP

    private func upgrade(_ head: HTTPRequestHead) {
        guard let context else { return }
        let address: NetworkAddress?
        do {
            address = try shared.quotas.takeSocket(of: self.address(head))
        } catch {
            write(HTTPAnswer(error), connection: "close")
            return end(machine.refused(at: now))
        }
        context.writeAndFlush(Self.wrapOutboundOut(.head(SocketHandshake.answer(to: head))), promise: nil)
        let channel = context.channel
        let pipeline = channel.pipeline.syncOperations
        var isOwned = false
        do {
            // Reading can have been paused while parts were kept for later.
            channel.setOption(.autoRead, value: true).whenFailure { _ in }
            let socket = SocketHandler(
                shared: shared.sockets, loop: loop, eventLoop: eventLoop,
                forwardedFor: shared.clientAddress.forwarded(in: head.headers)?.address, address: address,
                quotas: shared.quotas)
            try pipeline.addHandler(socket)
            isOwned = true
            let encoder = try pipeline.handler(type: HTTPResponseEncoder.self)
            let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
            pipeline.removeHandler(counter, promise: nil)
            pipeline.removeHandler(encoder, promise: nil)
            pipeline.removeHandler(self, promise: nil)
            // The decoder is removed last, because it passes on the bytes that followed the handshake.
            pipeline.removeHandler(decoder, promise: nil)
            try channel.syncOptions?.setOption(.recvAllocator, value: SocketReceiveAllocator())
        } catch {
            if !isOwned, let address { shared.quotas.sockets.release(address) }
            channel.close(promise: nil)
        }
    }
}

private let stalls = ServerMetric.connectionsStalled.counter()
private let invalidAddresses = ServerMetric.clientAddressesInvalid.counter()

/// Results of the routes' task, which can be reported from any thread.
extension HTTPConnectionHandler {
    /// Sends a complete answer at once.
    ///
    /// - Parameter place: The reserved memory of the answer, which is released when the peer has received the answer.
    func answered(_ answer: HTTPAnswer, holding place: AnswerReservation? = nil) {
        onLoop { $0.answer(answer, place) }
    }

    /// Lets the request wait for changes of an inbox.
    func waits(for poll: WaitingPoll) {
        onLoop { $0.wait(for: poll) }
    }

    /// Sends an interim response (RFC 9110 section 15.2), if the peer supports it.
    func notified(_ head: HTTPResponseHead) {
        onLoop { handler in
            guard let context = handler.context, handler.machine.mayNotify else { return }
            context.writeAndFlush(Self.wrapOutboundOut(.head(head)), promise: nil)
        }
    }

    /// Begins an answer with a body in parts.
    ///
    /// - Parameter length: Of the body in bytes, where it is known.
    func began(_ head: HTTPResponseHead, length: Int?) {
        onLoop { handler in
            guard let context = handler.context, handler.machine.owesAnswer else { return }
            var head = head
            head.version = handler.machine.version
            if let length { head.headers.replaceOrAdd(name: "content-length", value: String(length)) }
            let hasLength = head.headers.contains(name: "content-length")
            handler.finish(&head, handler.machine.answerBegan(hasLength: hasLength))
            context.writeAndFlush(Self.wrapOutboundOut(.head(head)), promise: nil)
        }
    }

    /// Sends a part of the body. Returns when the peer has received it.
    func send(_ bytes: ByteBuffer) async throws {
        let isOut = eventLoop.makePromise(of: Void.self)
        onLoop { handler in
            guard let context = handler.context, handler.machine.owesAnswer else {
                return isOut.fail(ChannelError.ioOnClosedChannel)
            }
            context.writeAndFlush(Self.wrapOutboundOut(.body(.byteBuffer(bytes))), promise: isOut)
            handler.written += bytes.readableBytes
            handler.machine.wrote(handler.progress, at: handler.now)
            handler.settle()
        }
        try await isOut.futureResult.get()
    }

    func ended() {
        onLoop { handler in
            guard handler.machine.owesAnswer else { return }
            handler.end(handler.machine.answerEnded(at: handler.now))
        }
    }

    /// Closes the connection, because a started answer cannot be completed.
    func broke() {
        onLoop { handler in
            if handler.machine.owesAnswer { handler.context?.close(promise: nil) }
        }
    }
}
