import CarillonWire

extension ClientSession {
    /// A frame came. `handledCode` is what was said of this message, or news, before, when it came before.
    mutating func received(
        _ frame: ServerFrame, handledCode: Int?, at now: ContinuousClock.Instant
    ) -> [SessionAction] {
        receivedSignOfLife(at: now)
        switch (phase, frame) {
        case (.identifying, .hello(let hello)):
            return identified(hello, at: now)
        case (.identifying, .pong), (.identifying, .goodbye), (.live, .pong), (.live, .unknownBroadcasts):
            if case .goodbye(let seconds) = frame { goodbyeDelay = .seconds(seconds) }
            return []
        case (.identifying, _), (.live, .hello):
            return close(.protocolError)
        case (.live, .register(let answer)):
            return registrationAnswered(answer, at: now)
        case (.live, .unregister(let channelID, let status)):
            return unregistrationAnswered(channelID, status: status, at: now)
        case (.live, .notification(let message)):
            return notificationReceived(message, handledCode: handledCode)
        case (.live, .channelEvent(let event)):
            return channelEventReceived(event, handledCode: handledCode, at: now)
        case (.live, .caughtUp):
            schedule.succeeded()
            return []
        case (.live, .goodbye(let seconds)):
            goodbyeDelay = .seconds(seconds)
            return []
        case (.stopped, _), (.resting, _), (.registering, _), (.opening, _), (.closing, _), (.waiting, _):
            // What was under way when the connection ended comes again.
            return []
        }
    }

    private mutating func identified(_ hello: ServerFrame.Hello, at now: ContinuousClock.Instant) -> [SessionAction] {
        // A server that does not answer as Carillon has made a stranger of us: nothing would ever arrive.
        guard let carillon = hello.carillon else { return close(.protocolError) }
        phase = .live
        let proposed = carillon.keepAliveSeconds > 0 ? Duration.seconds(carillon.keepAliveSeconds) : nil
        keepAlive = KeepAlive(
            interval: settings.keepAlive ?? proposed ?? Self.defaultKeepAlive, answerTime: settings.answerTime, at: now)
        availability.service = true
        let results = queuedResults.map { SessionAction.send($0.frame) }
        queuedResults = []
        return results + catchUp() + [.tellAvailability(availability)]
    }

    private mutating func notificationReceived(
        _ message: NotificationFrame, handledCode: Int?
    ) -> [SessionAction] {
        let id = message.version
        if let handledCode { return [.send(HandledMessage(id: id, code: handledCode).frame)] }
        guard !undecided.contains(id) else { return [] }
        guard let channelID = ChannelID(message.channelID), let identifier = identifiers[channelID],
            channels[identifier]?.receivesMessages == true
        else {
            // Nobody will ever take it, and it must not stop what comes behind it.
            return [.send(HandledMessage(id: id, code: ResultCode.notDelivered).frame)]
        }
        var shown = message
        if let keys = channels[identifier]?.keys, !message.body.isEmpty {
            do {
                let coding = message.coding ?? ContentCoding(.identity)
                shown.body = try keys.decrypt(message.body, coding)
                shown.coding = ContentCoding(.identity)
            } catch {
                let result = HandledMessage(id: id, code: ResultCode.undecryptable)
                return [.send(result.frame), .noteUndecryptable(id: id, identifier, error)]
            }
        }
        guard undecided.count < Self.undecidedLimit else { return close(.policy) }
        undecided.insert(id)
        return [.deliver(.message(shown), to: identifier)]
    }
}
