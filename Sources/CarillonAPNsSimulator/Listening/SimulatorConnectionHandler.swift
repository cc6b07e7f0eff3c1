import NIOCore
import NIOHPACK
import NIOSSL
import NIOTLS

/// Serves one connection: runs HTTP/2, passes requests to the service, and applies faults and conditions.
final class SimulatorConnectionHandler: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = Never
    typealias OutboundOut = ByteBuffer

    /// Requests a graceful end of a connection.
    struct Shutdown: Sendable {}
    /// Requests that the socket of a connection is closed without an end of TLS.
    struct Cut: Sendable {}

    let hub: Hub
    let transport: TransportHandler
    let conditions: Conditions
    let services: Submission.Services
    private let isSecure: Bool
    private let certificate: PeerCertificate

    var http: HTTP2Connection
    var report: ConnectionReport
    var context: ChannelHandlerContext?
    private var binding = ConnectionBinding()
    private var authority = ""
    private var environment: Environment

    /// The faults of requests that are not complete.
    var faults: [UInt32: FaultRule] = [:]
    /// Requests that were processed and whose response is late.
    var processed: Set<UInt32> = []
    var isWedged = false
    var closesWhenDrained = false
    /// Whether a response showed that the credentials are valid.
    private var isProven = false
    private var hasLoweredLimit = false
    private var badDeviceTokensInRow = 0
    private var isReading = false
    private var isReportDue = false
    private var wantsRead = false
    private var lastAuthorization: String?
    private var lastRequest = NIODeadline.now()

    init(
        hub: Hub, transport: TransportHandler, services: Submission.Services, isSecure: Bool, certificate: PeerCertificate,
        report: ConnectionReport, conditions: Conditions
    ) {
        self.hub = hub
        self.transport = transport
        self.conditions = conditions
        self.services = services
        self.isSecure = isSecure
        self.certificate = certificate
        self.report = report
        environment = report.environment
        http = HTTP2Connection(connectionTarget: min(conditions.connectionWindow, 65_535))
        http.answersPings = conditions.answersPings
    }

    // MARK: Lifecycle

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        if !isSecure, context.channel.isActive { begin() }
    }

    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func channelActive(context: ChannelHandlerContext) {
        if !isSecure { begin() }
        context.fireChannelActive()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case TLSUserEvent.handshakeCompleted(let negotiated):
            report.negotiatedProtocol = negotiated
            begin()
        case is Shutdown: sendGoAway(reason: .shutdown)
        case is Cut: transport.cut()
        default: context.fireUserInboundEventTriggered(event)
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        hub.closed(report)
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    private func begin() {
        binding = ConnectionBinding(certificate: certificate.shown)
        report.hasCertificate = certificate.shown != nil
        http.offer(
            streams: binding.startsWithOneStream ? conditions.firstStreams : conditions.streams,
            streamWindow: conditions.streamWindow, headerListBytes: HTTP2Connection.largestHeaderList)
        isReportDue = true
        flush()
        lastRequest = .now()
        awaitIdleness()
    }

    private func awaitIdleness() {
        guard let timeout = conditions.idleTimeout.map({ TimeAmount($0) }), let context else { return }
        let loopBound = NIOLoopBound(self, eventLoop: context.eventLoop)
        context.eventLoop.scheduleTask(deadline: lastRequest + timeout) {
            let handler = loopBound.value
            guard handler.context != nil else { return }
            if handler.lastRequest + timeout <= .now(), handler.http.openStreams == 0 {
                handler.sendGoAway(reason: .idleTimeout)
            } else {
                if handler.http.openStreams > 0 { handler.lastRequest = .now() }
                handler.awaitIdleness()
            }
        }
    }

    private func sendGoAway(reason: Reason) {
        guard let context else { return }
        _ = http.goAway(lastStream: http.highestStream, .noError, debug: SimulatorAnswer(reason).body)
        flush()
        context.close(promise: nil)
    }

    // MARK: Reading

    /// While a client does not read, nothing more is read from it.
    func read(context: ChannelHandlerContext) {
        if context.channel.isWritable { context.read() } else { wantsRead = true }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable, wantsRead {
            wantsRead = false
            context.read()
        }
        context.fireChannelWritabilityChanged()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isWedged else { return }
        isReading = true
        http.received(unwrapInboundIn(data))
        while let event = http.nextEvent() {
            happened(event)
            guard !isWedged, self.context != nil else { break }
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        isReading = false
        if !isWedged { http.endRead() }
        flush()
        context.fireChannelReadComplete()
    }

    private func happened(_ event: HTTP2Connection.Event) {
        isReportDue = true
        switch event {
        case .headersArrived(let stream, let head): began(stream, head)
        case .headersTooLarge:
            report.requests += 1
            noteStreams(http.openStreams + 1)
        case .requestCompleted(let stream, let head, let body, let bytes): completed(stream, head, body, bytes)
        case .streamReset(let stream):
            faults[stream] = nil
            processed.remove(stream)
            report.resets += 1
        case .streamRefused:
            report.refusedStreams += 1
            noteStreams(http.openStreams + 1)
        case .pingArrived: report.pings += 1
        case .priorityArrived: report.priorityFrames += 1
        case .streamLimitViolated(let stream):
            report.refusedStreams += 1
            noteStreams(http.openStreams + 1)
            switch conditions.excess {
            case .refuse: http.writeReset(stream, .refusedStream)
            case .goAway:
                dropStreams(above: stream > 2 ? stream - 2 : 0, .protocolError, debug: "Maximum active streams violated")
                closesWhenDrained = true
            }
        case .failed:
            flush()
            context?.close(promise: nil)
        }
    }

    private func noteStreams(_ count: Int) {
        report.mostStreams = max(report.mostStreams, count)
        if !isProven { report.mostStreamsAtFirst = max(report.mostStreamsAtFirst, count) }
    }

    // MARK: Requests

    private func began(_ stream: UInt32, _ head: SimulatorRequestHead) {
        report.requests += 1
        report.headerBlockBytes = head.blockBytes
        noteStreams(http.openStreams)
        lastRequest = .now()
        if head.authority != authority {
            authority = head.authority
            environment = AppleHosts.environment(of: authority) ?? report.environment
        }
        if head.fields.authorization != lastAuthorization {
            lastAuthorization = head.fields.authorization
            report.providerTokens += 1
        }
        if let rule = hub.rule(path: head.path, connection: report.number, stream: stream) {
            if rule.moment != .headers {
                faults[stream] = rule
            } else if case .delay = rule.fault {
                faults[stream] = rule
            } else if !goesOn(after: rule, stream, head, processed: nil) {
                return
            }
        }
        if let event = http.completionAfterHeaders(stream) { happened(event) }
    }

    private func completed(_ stream: UInt32, _ head: SimulatorRequestHead, _ body: ByteBuffer, _ bodyBytes: Int) {
        let rule = faults.isEmpty ? nil : faults.removeValue(forKey: stream)
        if let rule, rule.moment != .processed, !goesOn(after: rule, stream, head, processed: nil) { return }
        let answer = hub.answer(
            submission(head, body, bodyBytes), connection: report.number, stream: stream, binding: &binding)
        if let rule {
            if case .delay(let duration) = rule.fault { return sendLater(answer, on: stream, after: duration) }
            if rule.moment == .processed, !goesOn(after: rule, stream, head, processed: answer) { return }
        }
        send(answer, on: stream)
    }

    func submission(_ head: SimulatorRequestHead, _ body: ByteBuffer, _ bytes: Int) -> Submission {
        Submission(
            environment: environment, services: services, method: head.method, path: head.path, fields: head.fields,
            payload: body, payloadBytes: bytes)
    }

    private func sendLater(_ answer: SimulatorAnswer, on stream: UInt32, after duration: Duration) {
        guard let context else { return }
        processed.insert(stream)
        let loopBound = NIOLoopBound(self, eventLoop: context.eventLoop)
        context.eventLoop.scheduleTask(in: TimeAmount(duration)) {
            let handler = loopBound.value
            guard handler.context != nil, handler.processed.remove(stream) != nil, !handler.isWedged else { return }
            handler.send(answer, on: stream)
            handler.flush()
        }
    }

    /// Sends a response of the service, and applies its effects to the connection.
    func send(_ answer: SimulatorAnswer, on stream: UInt32) {
        let body = answer.body
        http.answer(stream, headers(of: answer), body: body.isEmpty ? ByteBuffer() : ByteBuffer(string: body))
        if answer.isAccepted {
            accepted()
        } else {
            rejected(answer, on: stream)
        }
    }

    func headers(of answer: SimulatorAnswer) -> HPACKHeaders {
        var headers = HPACKHeaders()
        headers.reserveCapacity(4)
        headers.add(name: ":status", value: answer.status == 200 ? "200" : String(answer.status))
        if let id = answer.id { headers.add(name: "apns-id", value: id, indexing: .nonIndexable) }
        if let id = answer.uniqueID { headers.add(name: "apns-unique-id", value: id, indexing: .nonIndexable) }
        if let id = answer.requestID { headers.add(name: "apns-request-id", value: id, indexing: .nonIndexable) }
        if let id = answer.channelID { headers.add(name: "apns-channel-id", value: id, indexing: .nonIndexable) }
        return headers
    }

    func accepted() {
        report.accepted += 1
        badDeviceTokensInRow = 0
        if hasLoweredLimit {
            isProven = true
            hasLoweredLimit = false
            http.offer(streams: conditions.streams)
        } else {
            proved()
        }
    }

    /// The credentials are valid, so all streams of the connection can be used from now on.
    private func proved() {
        guard !isProven else { return }
        isProven = true
        if binding.startsWithOneStream, conditions.firstStreams != conditions.streams {
            http.offer(streams: conditions.streams)
        }
    }

    private func rejected(_ answer: SimulatorAnswer, on stream: UInt32) {
        if let reason = answer.reason, reason.showsThatCredentialsAreTaken { proved() }
        // An inactive token is not a fault of the client.
        guard answer.status != 410 else { return }
        if conditions.rejection != .nothing {
            if !hasLoweredLimit, isProven { http.offer(streams: 1) }
            hasLoweredLimit = isProven
            if conditions.rejection == .lowersLimitAndRefuses { refuseOthers(than: stream) }
        }
        badDeviceTokensInRow = answer.reason == .badDeviceToken ? badDeviceTokensInRow + 1 : 0
        if let limit = conditions.badDeviceTokens, badDeviceTokensInRow >= limit, !closesWhenDrained {
            _ = http.goAway(lastStream: http.highestStream, .noError, debug: answer.body)
            closesWhenDrained = true
        }
    }

    // MARK: Writing

    func flush() {
        guard let context else { return }
        if isReportDue, !isReading {
            isReportDue = false
            hub.update(report)
        }
        if http.output.readableBytes > 0 {
            let size = http.output.readableBytes
            context.writeAndFlush(wrapOutboundOut(http.output), promise: nil)
            // The next output is likely to have the same size.
            http.output = context.channel.allocator.buffer(capacity: min(max(size, 512), 65_536))
        }
        if closesWhenDrained, http.isDrained { context.close(promise: nil) }
    }
}

/// The client certificate of the TLS handshake; nil if the client presented none.
final class PeerCertificate {
    var shown: ClientCertificate?
}
