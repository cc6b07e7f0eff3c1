import Logging
import NIOCore

/// Opens, retires and closes connections.
extension ConnectionPool {
    func perform(_ action: PoolMachine.Action, _ now: Moment) {
        switch action {
        case .open(let id): open(id, now)
        case .retire(let id):
            guard let link = links.first(where: { $0.id == id }) else { return }
            retire(link, "It is no longer needed.")
        }
    }

    func retire(_ link: Link, _ why: String) {
        guard link.channel != nil else { return fail(link, ConnectionFault(.retired, why), nil) }
        link.machine.retire(why)
        machine.draining(link.id, time.now())
        touch(link)
    }

    /// Retires the connections that must not carry the token. New connections replace them.
    func retireLinks(thatMayNotCarry token: ProviderToken, _ now: Moment) {
        for link in links where link.machine.phase == .open && !link.tokens.mayCarry(token, now) {
            retire(link, "The newer provider token needs a new connection.")
        }
    }

    private func open(_ id: ConnectionID, _ now: Moment) {
        let link = Link(
            id, ConnectionMachine(options: options.connection, now: now), credentialsEpoch: credentialsEpoch, now)
        links.append(link)
        let handler = APNsConnectionHandler(id: id, pool: self, isSecure: opener.tls != nil)
        opener.open(on: loop, handler: handler).assumeIsolated().whenComplete { result in
            switch result {
            case .success(let channel):
                guard let link = self.links.first(where: { $0.id == id }) else { return channel.close(promise: nil) }
                link.socket = channel
            case .failure(let error): self.closed(id, error)
            }
        }
    }

    /// TLS is established, and HTTP/2 starts.
    func connected(_ id: ConnectionID, _ channel: any NIOCore.Channel) {
        guard let link = links.first(where: { $0.id == id }) else { return channel.close(promise: nil) }
        link.channel = channel
        link.machine = ConnectionMachine(options: options.connection, now: time.now())
        metrics.connectionOpened()
        touch(link)
        endTurn()
    }

    func received(_ bytes: inout ByteBuffer, _ id: ConnectionID) {
        guard let link = links.first(where: { $0.id == id }) else { return }
        link.machine.received(&bytes, now: time.now())
        touch(link)
    }

    func becameWritable(_ id: ConnectionID) {
        guard let link = links.first(where: { $0.id == id }) else { return }
        link.machine.outputResumed()
        touch(link)
        report(link, time.now())
        endTurn()
    }

    /// A socket was closed, or could not be opened.
    func closed(_ id: ConnectionID, _ error: (any Error)?) {
        guard let link = links.first(where: { $0.id == id }) else { return }
        if link.channel == nil {
            fail(link, ConnectionFault(.closed, "The connection could not be opened."), error)
        } else {
            // With TLS 1.3, a server checks the client's certificate after the handshake is complete for the client.
            if let error, !link.hasAnswered, ConnectFailure.isAboutOwnCertificate(error) {
                link.failure = ConnectFailure(error, to: opener)
            }
            link.machine.closed(error.map(ConnectFailure.ending) ?? "The service closed the connection.")
            touch(link)
        }
        endTurn()
    }

    /// An attempt to connect failed.
    func fail(_ link: Link, _ fault: ConnectionFault, _ error: (any Error)?) {
        links.removeAll { $0 === link }
        link.socket?.close(promise: nil)
        machine.ended(link.id, time.now(), isRetired: fault.kind == .retired, random: .random(in: 0...1))
        guard fault.kind != .retired else { return }
        noteConnectFailure(ConnectFailure(error ?? fault, to: opener))
        metrics.connectFailed()
        if let error = connectFailure?.error {
            logger.warning("cannot connect; retrying", metadata: ["host": "\(opener.address.host)", "error": "\(error)"])
        }
    }

    func noteConnectFailure(_ failure: ConnectFailure) {
        connectFailure = failure
        failedAttempts += 1
    }

    /// Abandons attempts that take too long.
    func expireAttempts(_ now: Moment) {
        for link in links where link.channel == nil && now - link.beganAt > opener.timeout + .seconds(1) {
            fail(link, ConnectionFault(.silent, "The host did not finish connecting within \(opener.timeout)."), nil)
        }
    }

    /// Fails the waiting pushes while every attempt to connect fails with a lasting fault.
    func failUnsendable(_ now: Moment) {
        guard let connectFailure, connectFailure.isLasting, machine.queued > 0 else { return }
        guard !links.contains(where: { $0.channel != nil }) else { return }
        // If the schedule allows the next attempt, the pushes wait for it.
        guard !machine.schedule.allows(now) else { return }
        for push in machine.takeQueue() { fail(push, connectFailure.error) }
    }

    func timeoutError(of push: PushID) -> APNsError {
        guard let pending = pushes[push] else { return Self.cancelledError }
        let timeout = pending.timeout
        if case .stream = pending.place { return APNsError(.timedOut, "The service did not answer within \(timeout).") }
        if let connectFailure, !links.contains(where: { $0.channel != nil }) { return connectFailure.error }
        let code = pending.wasSent ? APNsError.Code.timedOut : .notSent
        if machine.isPaced(time.now()), !links.contains(where: { $0.channel != nil }) {
            return APNsError(
                code,
                "The service closes its connections soon after they are opened, so the push found no connection within \(timeout)."
            )
        }
        return APNsError(
            code,
            pending.returns > 0
                ? "The service refused the push's stream \(pending.returns) times within \(timeout), and did not process it."
                : "The push found no free connection within \(timeout).")
    }
}
