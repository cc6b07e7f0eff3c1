import CarillonWire
import Logging

/// Does what the session cannot do by itself, one thing after the other until it is cancelled: registers the device,
/// opens sockets and reads them, waits.
struct ConnectionLoop: Sendable {
    let runner: SessionRunner
    let registrar: DeviceRegistrar
    let transport: WebSocketTransport
    let failures: FailureNote

    private var logger: Logger { runner.logger }

    func run() async {
        await take("started") { session, context in session.started(at: context.now) }
        while !Task.isCancelled {
            switch runner.move {
            case .rest: await runner.wakes.wait()
            case .registerDevice: await registerDevice()
            case .openSocket(let identity): await openSocket(identity)
            }
        }
        await take("stopped") { session, _ in session.stopped() }
        runner.endIterations()
    }

    // MARK: The device

    private func registerDevice() async {
        let outcome = await registrar.register()
        guard !Task.isCancelled || outcome.isRegistered else { return }
        switch outcome {
        case .registered(let identity):
            logger.info("The device is registered", metadata: ["device": "\(identity.device)"])
            await take("deviceRegistered") { session, _ in session.deviceRegistered(identity) }
            if case .registerDevice = runner.move {
                // The identity could not be stored: it is lost, and another is asked for after a while.
                await take("deviceRegistrationFailed") { session, context in
                    session.deviceRegistrationFailed(
                        .unavailable(retryAfter: nil), at: context.now, random: context.random)
                }
            }
        case .failed(let failure, let error):
            failures.note(error)
            logger.log(
                level: failure == .refused ? .error : .info, "The device is not registered",
                metadata: ["reason": "\(error)"])
            await take("deviceRegistrationFailed") { session, context in
                session.deviceRegistrationFailed(failure, at: context.now, random: context.random)
            }
        }
    }

    // MARK: The socket

    private func openSocket(_ identity: DeviceIdentity) async {
        guard let address = WebAddress(webSocket: identity.socket) else {
            failures.note(PushError(.storageDamaged, "The stored socket address is not a ws: or wss: URL."))
            await take("socketFailed") { session, context in
                session.socketFailed(reachedServer: false, at: context.now, random: context.random)
            }
            return
        }
        do {
            try await transport.withConnection(to: address) { connection in
                runner.attach(connection)
                let code = await read(connection)
                runner.detach()
                await socketClosed(code: code)
            }
        } catch {
            guard !Task.isCancelled else { return }
            let fault = pushError(for: error, address)
            failures.note(fault)
            logger.info(
                "There is no connection",
                metadata: ["reason": "\(fault)", "cause": "\(error.cause.map { "\($0)" } ?? "none")"])
            let reached = error.kind == .reachedServer || error.kind == .refusedUpgrade
            await take("socketFailed") { session, context in
                session.socketFailed(reachedServer: reached, at: context.now, random: context.random)
            }
        }
    }

    /// Lives through one connection, and tells with which code it ended.
    private func read(_ connection: WebSocketConnection) async -> UInt16? {
        await take("socketOpened") { session, context in session.socketOpened(at: context.now) }
        do {
            let code = try await connection.forEachEvent { event in await took(event, on: connection) }
            if Task.isCancelled { connection.close(code: CloseCode.normal.rawValue) }
            return code
        } catch {
            connection.close(code: CloseCode.normal.rawValue)
            logger.debug("The connection broke", metadata: ["error": "\(error)"])
            return nil
        }
    }

    private func took(_ event: WebSocketConnection.Event, on connection: WebSocketConnection) async {
        do {
            switch event {
            case .text(let text):
                guard let frame = try ServerFrame.parse(text) else { return try await heard() }
                try await runner.perform { session, context throws(PushError) in
                    var handled: Int?
                    switch frame {
                    case .notification(let message): handled = try context.handledCode(of: message.version)
                    case .channelEvent(let event): handled = try context.handledCode(of: event.version)
                    default: break
                    }
                    return session.received(frame, handledCode: handled, at: context.now)
                }
            case .signOfLife:
                try await heard()
            case .binary:
                connection.close(code: CloseCode.unsupportedData.rawValue)
            }
        } catch let error as PushError {
            // Nothing of the frame has happened; after a new connection it comes again.
            failures.note(error)
            logger.error("A frame could not be taken in", metadata: ["error": "\(error)"])
            connection.close(code: CloseCode.normal.rawValue)
        } catch {
            failures.note(PushError(.protocolViolated, "The server sent a frame that cannot be read.", cause: error))
            logger.error("The server sent a frame that cannot be read")
            connection.close(code: CloseCode.protocolError.rawValue)
        }
    }

    private func heard() async throws(PushError) {
        try await runner.perform { session, context in
            session.receivedSignOfLife(at: context.now)
            return []
        }
    }

    private func socketClosed(code: UInt16?) async {
        logger.info("The connection ended", metadata: ["code": "\(code.map(String.init) ?? "none")"])
        if code == CloseCode.unauthorized.rawValue || code == CloseCode.gone.rawValue {
            failures.note(PushError(.deviceUnknown, "The server does not know this device any more."))
        }
        do {
            try await runner.perform { session, context in
                session.socketClosed(code: code, at: context.now, random: context.random)
            }
        } catch {
            failures.note(error)
            logger.error("The end of the connection could not be stored", metadata: ["error": "\(error)"])
            await take("socketFailed") { session, context in
                session.socketFailed(reachedServer: true, at: context.now, random: context.random)
            }
        }
    }

    // MARK: Parts

    /// Takes in a fact of which nothing needs to be said when it cannot be stored, beyond the log.
    private func take(_ name: String, _ change: @escaping SessionRunner.Change) async {
        do {
            try await runner.perform(change)
        } catch {
            failures.note(error)
            logger.error("A step failed", metadata: ["fact": "\(name)", "error": "\(error)"])
        }
    }

    private func pushError(for fault: TransportFault, _ address: WebAddress) -> PushError {
        switch fault.kind {
        case .unreachable:
            PushError(.serverUnreachable, "The server \(address.authority) cannot be reached.", cause: fault.cause)
        case .timeOut: PushError(.serverUnreachable, "The server \(address.authority) did not answer in time.")
        case .reachedServer:
            PushError(.serverUnavailable, "No connection came about with \(address.authority).", cause: fault.cause)
        case .refusedUpgrade:
            PushError(.serverUnavailable, "The server \(address.authority) did not accept a WebSocket.")
        }
    }
}

extension DeviceRegistrar.Outcome {
    var isRegistered: Bool { if case .registered = self { true } else { false } }
}
