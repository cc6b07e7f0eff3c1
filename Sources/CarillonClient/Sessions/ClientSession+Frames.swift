import CarillonWire

extension ClientSession {
    /// A frame came. `answered` is what the server was notified of this message, or news, before, when it came before.
    /// `firingStarts` are the starts of the app's code for a firing that ended with the process.
    mutating func received(
        _ frame: ServerFrame, answered: Int?, firingStarts: Int = 0, at now: ContinuousClock.Instant, random: Double
    ) -> [SessionAction] {
        receivedSignOfLife(at: now)
        switch (phase, frame) {
        case (.identifying, .hello(let hello)):
            return identified(hello, at: now)
        case (.live, .pong):
            defer { connection.awaitsPong = false }
            return connection.awaitsPong ? [.noteCaughtUp] : []
        case (.identifying, .pong), (.identifying, .goodbye), (.live, .unknownBroadcasts):
            if case .goodbye(let seconds) = frame { connection.goodbyeDelay = .seconds(seconds) }
            return []
        case (.identifying, _), (.live, .hello):
            return close(.protocolError)
        case (.live, .register(let answer)):
            return registrationAnswered(answer, at: now, random: random)
        case (.live, .unregister(let channelID, let status)):
            return unregistrationAnswered(channelID, status: status, at: now, random: random)
        case (.live, .notification(let message)):
            return notificationReceived(message, answered: answered, at: now)
        case (.live, .channelEvent(let event)):
            return channelEventReceived(event, answered: answered, at: now)
        case (.live, .deviceStatus(let frame)):
            return deviceStatusReceived(frame, answered: answered)
        case (.live, .fired(let frame)): return firedReceived(frame, answered: answered, starts: firingStarts)
        // Updates come by their own poll.
        case (.live, .update): return []
        case (.live, .service(let frame)): return serviceReceived(frame, answered: answered)
        case (.live, .providersChanged): return [.notifyProviders]
        case (.live, .answer(let answer)):
            return answer.id >= SocketRequester.firstID
                ? [.notifyRequests(answer)] : [.notifySubscriptions(.answered(answer))]
        case (.live, .caughtUp):
            schedule.succeeded()
            connection.hasCaughtUp = true
            return [.noteCaughtUp]
        case (.live, .goodbye(let seconds)):
            connection.goodbyeDelay = .seconds(seconds)
            return []
        case (.stopped, _), (.resting, _), (.deregistering, _), (.registering, _), (.locating, _), (.renewing, _),
            (.opening, _),
            (.closing, _), (.waiting, _):
            // What was under way when the connection ended comes again.
            return []
        }
    }

    private mutating func identified(_ hello: ServerFrame.Hello, at now: ContinuousClock.Instant) -> [SessionAction] {
        // A server that does not answer as Carillon has made a stranger of us: nothing would ever arrive.
        guard let carillon = hello.carillon else { return close(.protocolError) }
        phase = .live
        let proposed = carillon.keepAliveSeconds > 0 ? Duration.seconds(carillon.keepAliveSeconds) : nil
        connection.keepAlive = KeepAlive(
            interval: settings.keepAlive ?? proposed ?? Self.defaultKeepAlive, answerTime: settings.answerTime, at: now)
        availability.service = true
        connection.version = carillon.version
        connection.supportsServices = carillon.also.contains("services") || carillon.version >= Self.servicesSince
        knownServer.mustLocate = false
        var actions: [SessionAction] = []
        registration.mustRepeat = false
        if registration.secret != nil {
            registration.secret = nil
            actions.append(.write(.saveRegistration(nil)))
        }
        let reports = messages.takeReports()
        actions += reports.map { SessionAction.send($0.frame) }
        if !reports.isEmpty { actions.append(.write(.removeReports)) }
        // The server knows the credential, and so it is ours, whatever it calls itself by now.
        if let server = carillon.server, server != knownServer.id {
            knownServer.id = server
            actions.append(.write(.saveServer(address: settings.server, id: server)))
        }
        actions += compare(with: carillon)
        return actions + catchUp() + reportUser(at: now) + reportDevice(at: now)
            + [.notifyAvailability(availability)] + resumeSubscriptions()
    }
}
