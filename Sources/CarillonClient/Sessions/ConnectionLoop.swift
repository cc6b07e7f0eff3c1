import CarillonBasics
import CarillonWire
import Logging
import Synchronization

/// Performs the moves of the session one after another, until the task is cancelled: registers the device, opens and reads
/// sockets, and waits.
struct ConnectionLoop: Sendable {
    let runner: SessionRunner
    let registrar: ClientRegistrar
    let transport: any ClientTransport

    private var logger: Logger { runner.logger }
    private var failures: FailureNote { runner.failures }

    func run() async {
        await take("started") { session, context in session.started(at: context.now) }
        while !Task.isCancelled {
            switch runner.session.move {
            case .rest: await runner.wakes.wait()
            case .deregister(let deregistration): await deregister(deregistration)
            case .registerDevice: await registerDevice()
            case .locateServer: await locateServer()
            case .renewCredential(let identity): await renewCredential(of: identity)
            case .openSocket(let identity): await openSocket(identity)
            }
        }
        await take("stopped") { session, _ in session.stopped() }
    }

    // MARK: The device

    private func registerDevice() async {
        let fresh = ClientRegistrar.makeSecret()
        await take("registrationBegan") { session, _ in session.registrationBegan(secret: fresh) }
        guard let secret = runner.session.registration.secret else {
            // The secret could not be stored. Without it, a lost answer would leave a stale device on the server.
            return await registrationFailed(.unavailable(retryAfter: nil), of: nil)
        }
        let answer = await registrar.register(as: secret)
        if case .failed = answer, Task.isCancelled { return }
        switch answer {
        case .done(let device):
            failures.answered(at: registrar.server)
            logger.info("The device is registered", metadata: ["device": "\(device.identity.device)"])
            await take("deviceRegistered") { session, _ in
                session.deviceRegistered(
                    device.identity, server: device.server, isRepeatable: device.isRepeatable, of: secret)
            }
            if case .registerDevice = runner.session.move {
                // The identity could not be stored. The request is repeated after a delay.
                await registrationFailed(.unavailable(retryAfter: nil), of: secret)
            }
        case .failed(.refused, let error):
            failures.note(error)
            logger.error("The device is not registered", metadata: ["reason": "\(error)"])
            await registrationFailed(.refused, of: secret)
        case .failed(let failure, let error):
            failures.failed(at: registrar.server, by: .http, error)
            await registrationFailed(failure, of: secret)
            failures.willRetry(at: registrar.server, after: runner.session.retryDelay(at: .now))
        }
    }

    private func registrationFailed(_ failure: RegistrationFailure, of secret: String?) async {
        await take("deviceRegistrationFailed") { session, context in
            session.deviceRegistrationFailed(failure, of: secret, at: context.now, random: context.random)
        }
    }

    private func renewCredential(of identity: DeviceIdentity) async {
        let fresh = ClientRegistrar.makeSecret(bytes: 24)
        await take("renewalBegan") { session, _ in session.renewalBegan(secret: fresh) }
        guard let secret = runner.session.registration.renewal else {
            return await renewalFailed(isReached: false)
        }
        let renewal = await registrar.renewCredential(of: identity, to: secret)
        if renewal.isAnswer { failures.answered(at: registrar.server) }
        switch renewal {
        case .done:
            logger.info("The storage came from a backup: the device has another credential")
            await take("credentialRenewed") { session, _ in session.credentialRenewed() }
            if case .renewCredential = runner.session.move {
                await renewalFailed(isReached: true)
            }
        case .unsupported: await take("renewalUnsupported") { session, _ in session.renewalUnsupported() }
        case .unknown:
            await take("renewalRefused") { session, context in
                session.renewalRefused(at: context.now, random: context.random)
            }
        case .failed(let failure, let error):
            failures.failed(at: registrar.server, by: .http, error)
            await renewalFailed(isReached: failure != .unreachable, retryAfter: failure.retryAfter)
            failures.willRetry(at: registrar.server, after: runner.session.retryDelay(at: .now))
        }
    }

    private func renewalFailed(isReached: Bool, retryAfter: Duration? = nil) async {
        await take("renewalFailed") { session, context in
            session.renewalFailed(
                isReached: isReached, retryAfter: retryAfter, at: context.now, random: context.random)
        }
    }

    private func deregister(_ deregistration: Deregistration) async {
        let server = WebAddress(http: deregistration.server) ?? registrar.server
        switch await registrar.delete(deregistration) {
        case .done:
            failures.answered(at: server)
            await take("deregistered") { session, _ in session.deregistered(deregistration) }
        case .failed(let failure, let error):
            failures.failed(at: server, by: .http, error)
            defer { failures.willRetry(at: server, after: runner.session.deregistrationDelay(at: .now)) }
            await take("deregistrationFailed") { session, context in
                session.deregistrationFailed(
                    deregistration, retryAfter: failure.retryAfter, at: context.now, random: context.random)
            }
        }
    }

    private func locateServer() async {
        switch await registrar.locate() {
        case .done(let server):
            failures.answered(at: registrar.server)
            await take("serverLocated") { session, context in
                session.serverLocated(server, at: context.now, random: context.random)
            }
        case .failed(let failure, let error):
            failures.failed(at: registrar.server, by: .http, error)
            await take("serverNotLocated") { session, context in
                session.serverNotLocated(
                    isReached: failure != .unreachable, retryAfter: failure.retryAfter, at: context.now,
                    random: context.random)
            }
            failures.willRetry(at: registrar.server, after: runner.session.retryDelay(at: .now))
        }
    }

    // MARK: The socket

    private func openSocket(_ identity: DeviceIdentity) async {
        guard let address = WebAddress(webSocket: identity.socket) else {
            failures.note(PushError(.storageDamaged, "The stored socket address is not a ws: or wss: URL."))
            return await socketFailed(reachedServer: false)
        }
        let lives = failures.liveCount
        do {
            try await transport.withConnection(to: address) { connection in
                runner.connection.withLock { $0 = connection }
                let intake = FrameIntake()
                let code = await read(connection, intake)
                // Received frames are stored and acknowledged before the connection is closed.
                await intake.drained()
                if Task.isCancelled { connection.close(code: CloseCode.normal.rawValue) }
                runner.connection.withLock { $0 = nil }
                await socketClosed(code: code)
                if failures.liveCount == lives { reportUnanswered(address, code, intake.fault) }
            }
        } catch {
            guard !Task.isCancelled else { return }
            let failure = ConnectionFailure(error, at: address, sentBy: registrar.server)
            let code: PushError.Code =
                error.kind == .unreachable || error.kind == .timeOut ? .serverUnreachable : .serverUnavailable
            failures.failed(at: address, by: .socket, failure.error(code))
            defer { failures.willRetry(at: address, after: runner.session.retryDelay(at: .now)) }
            let reached = error.kind == .reachedServer || error.kind == .refusedUpgrade
            await socketFailed(reachedServer: reached)
        }
    }

    /// Reports a connection that ended before the server had accepted the device, if another attempt follows.
    private func reportUnanswered(_ address: WebAddress, _ code: UInt16?, _ fault: PushError?) {
        guard !Task.isCancelled, let delay = runner.session.retryDelay(at: .now) else { return }
        let end = code.map { "closed the connection with code \($0)" } ?? "ended the connection"
        let unanswered = PushError(.serverUnavailable, "The server \(end) before it accepted the device.")
        failures.failed(at: address, by: .socket, fault ?? unanswered)
        failures.willRetry(at: address, after: delay)
    }

    /// Reads one connection until its end, and returns its close code.
    private func read(_ connection: WebSocketConnection, _ intake: FrameIntake) async -> UInt16? {
        await take("socketOpened") { session, context in session.socketOpened(at: context.now) }
        do {
            return try await connection.forEachEvent { event in await handle(event, on: connection, intake) }
        } catch {
            connection.close(code: CloseCode.normal.rawValue)
            logger.debug("The connection broke", metadata: ["reason": "\(ConnectionReason(error).summary)"])
            return nil
        }
    }

    private func handle(
        _ event: WebSocketConnection.Event, on connection: WebSocketConnection, _ intake: FrameIntake
    ) async {
        do {
            switch event {
            case .text(let text): await begin(try ServerFrame.parse(text), on: connection, intake)
            case .signOfLife: await begin(nil, on: connection, intake)
            case .binary: connection.close(code: CloseCode.unsupportedData.rawValue)
            }
        } catch {
            let fault = PushError(.protocolViolated, "The server sent a frame that cannot be read.", cause: error)
            intake.ended(by: fault)
            failures.note(fault)
            logger.error("The server sent a frame that cannot be read")
            connection.close(code: CloseCode.protocolError.rawValue)
        }
    }

    /// Begins the step for a frame, and does not wait until it is stored. Nil means any other sign of life.
    private func begin(_ frame: ServerFrame?, on connection: WebSocketConnection, _ intake: FrameIntake) async {
        await intake.enter()
        runner.begin { session, context throws(PushError) in
            guard let frame else {
                session.receivedSignOfLife(at: context.now)
                return []
            }
            var answered: Int?
            var firingStarts = 0
            switch frame {
            case .notification(let message): answered = try context.answer(to: message.version)
            case .channelEvent(let event): answered = try context.answer(to: event.version)
            case .deviceStatus(let status): answered = try context.answer(to: status.version)
            case .fired(let fired):
                answered = try context.answer(to: fired.version)
                if let known = runner.firings.starts(of: fired.version) {
                    firingStarts = known
                } else {
                    firingStarts = try context.firingStarts(of: fired.version)
                }
            case .service(let service): answered = try context.answer(to: service.version)
            default: break
            }
            return session.received(
                frame, answered: answered, firingStarts: firingStarts, at: context.now, random: context.random)
        } done: { result in
            if case .success = result, case .deviceStatus? = frame { runner.catchUps.received() }
            if case .failure(let error) = result {
                // The step changed nothing, and the server sends the frame again on the next connection.
                failures.note(error)
                logger.error("A frame could not be taken in", metadata: ["error": "\(error)"])
                connection.close(code: CloseCode.normal.rawValue)
            }
            intake.leave()
        }
    }

    private func socketClosed(code: UInt16?) async {
        logger.info("The connection ended", metadata: ["code": "\(code.map(String.init) ?? "none")"])
        do {
            try await runner.perform { session, context in
                session.socketClosed(code: code, at: context.now, random: context.random)
            }
        } catch {
            failures.note(error)
            logger.error("The end of the connection could not be stored", metadata: ["error": "\(error)"])
            await socketFailed(reachedServer: true)
        }
    }

    private func socketFailed(reachedServer: Bool) async {
        await take("socketFailed") { session, context in
            session.socketFailed(reachedServer: reachedServer, at: context.now, random: context.random)
        }
    }

    // MARK: Parts

    /// Performs a step. If it cannot be stored, only the log and ``FailureNote`` report it.
    private func take(_ name: String, _ change: @escaping SessionRunner.Change) async {
        do {
            try await runner.perform(change)
        } catch {
            failures.note(error)
            logger.error("A step failed", metadata: ["fact": "\(name)", "error": "\(error)"])
            // The loop repeats the step. A cancelled wait ends with the loop.
            if PushError.storageFault(error) != nil { try? await runner.health.wait(atMost: .seconds(1)) }
        }
    }
}

extension ClientRegistrar.Renewal {
    /// Whether the server answered about the credential.
    fileprivate var isAnswer: Bool { if case .failed = self { false } else { true } }
}
