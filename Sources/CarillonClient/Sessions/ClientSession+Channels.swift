import CarillonWire

extension ClientSession {
    // MARK: Facts from the app

    mutating func connectRequested(
        _ identifier: String, as channelID: ChannelID, keys: SubscriptionKeys? = nil, deadline: ContinuousClock.Instant?
    ) throws(PushError) -> [SessionAction] {
        var channel = channels[identifier] ?? ChannelMachine()
        let former = channel.channelID
        try channel.connectRequested(as: channelID, keys: keys)
        channels[identifier] = channel
        if let former { identifiers[former] = nil }
        identifiers[channelID] = identifier
        connectDeadlines[identifier] = deadline
        var actions: [SessionAction] = [.write(.saveChannel(identifier: identifier, channel))]
        switch phase {
        case .live: actions.append(registration(of: channelID, identifier))
        case .resting: actions += goOn()
        default: break
        }
        return actions
    }

    mutating func disconnectRequested(_ identifier: String) throws(PushError) -> [SessionAction] {
        var channel = channels[identifier] ?? ChannelMachine()
        try channel.disconnectRequested()
        channels[identifier] = channel
        var actions: [SessionAction] = [.write(.saveChannel(identifier: identifier, channel))]
        if phase == .live, let id = channel.channelID { actions.append(unregistration(of: id)) }
        return actions
    }

    mutating func messageHandled(_ message: HandledMessage) -> [SessionAction] {
        // A message of a lost device, or one that was answered before: nobody waits for the answer.
        guard undecided.remove(message.id) != nil else { return [] }
        var actions: [SessionAction] = [.write(.saveHandled(message))]
        if phase == .live {
            actions.append(.send(message.frame))
        } else {
            queuedResults.append(message)
            if queuedResults.count > Self.queuedResultsLimit { queuedResults.removeFirst() }
        }
        return actions
    }

    // MARK: Facts from the server

    mutating func registrationAnswered(
        _ answer: ServerFrame.Registered, at now: ContinuousClock.Instant
    ) -> [SessionAction] {
        guard let id = ChannelID(answer.channelID), let identifier = identifiers[id] else { return [] }
        return change(identifier) { channel in
            switch (answer.status, answer.pushEndpoint.flatMap(ChannelEndpoint.init)) {
            case (200, let endpoint?): channel.registered(at: endpoint)
            case (400..<500, _): channel.registrationFailed(code: ChannelErrorCode.registrationRefused)
            default: channel.registrationFailed(code: ChannelErrorCode.server.lowerBound)
            }
        } + deliverTokens(at: now)
    }

    mutating func unregistrationAnswered(
        _ channelID: String, status: Int, at now: ContinuousClock.Instant
    ) -> [SessionAction] {
        guard let id = ChannelID(channelID) else { return [] }
        guard status < 500 else {
            retryAt = now + settings.retryDelay
            return []
        }
        if withdrawals.remove(id) != nil { return [.write(.removeWithdrawal(id))] }
        return identifiers[id].map { change($0) { $0.unregistered() } } ?? []
    }

    mutating func channelEventReceived(
        _ frame: ChannelEventFrame, handledCode: Int?, at now: ContinuousClock.Instant
    ) -> [SessionAction] {
        // Its acknowledgement was lost with an earlier connection: the app was told.
        if let handledCode { return [.send(HandledMessage(id: frame.version, code: handledCode).frame)] }
        var actions: [SessionAction] = []
        if let id = ChannelID(frame.channelID) {
            if frame.event.isEnd, withdrawals.remove(id) != nil { actions.append(.write(.removeWithdrawal(id))) }
            if let identifier = identifiers[id] {
                actions += change(identifier) { channel in
                    switch frame.event {
                    case .closed: channel.closedByServer()
                    case .error(let code): channel.failedByServer(code: code)
                    case .pingFailed(let code): channel.pingFailed(code: code)
                    case .recovered: channel.recovered()
                    case .other: .none
                    }
                }
                if frame.event == .pingFailed(code: PushChannelEvent.PingFailure.tokenLost.code) { tokenLost(identifier) }
            }
        }
        actions += deliverTokens(at: now)
        let code = if case .other = frame.event { ResultCode.notDelivered } else { ResultCode.delivered }
        let handled = HandledMessage(id: frame.version, code: code)
        // The end of a channel says the same however often it comes; news of its back end does not.
        switch frame.event {
        case .pingFailed, .recovered: actions.append(.write(.saveHandled(handled)))
        case .closed, .error, .other: break
        }
        return actions + [.send(handled.frame)]
    }

    // MARK: Time

    mutating func connectTimedOut(_ identifier: String) -> [SessionAction] {
        connectDeadlines[identifier] = nil
        guard let channel = channels[identifier], channel.state == .connecting, let id = channel.channelID else {
            return []
        }
        var actions = change(identifier) { $0.connectTimedOut() }
        // The registration may have reached the server even though its answer did not reach us.
        guard identity != nil else { return actions }
        withdrawals.insert(id)
        actions.append(.write(.saveWithdrawal(id)))
        if phase == .live { actions.append(unregistration(of: id)) }
        return actions
    }

    // MARK: Parts of the above

    /// What a new connection begins with.
    func catchUp() -> [SessionAction] {
        let registrations = channels.sorted { $0.key < $1.key }.compactMap { identifier, channel -> SessionAction? in
            guard channel.state == .connecting, let id = channel.channelID else { return nil }
            return registration(of: id, identifier)
        }
        return registrations + unregistrations()
    }

    func unregistrations() -> [SessionAction] {
        let disconnecting = channels.values.compactMap { $0.state == .disconnecting ? $0.channelID : nil }
        return (disconnecting + withdrawals).sorted { $0.description < $1.description }.map(unregistration)
    }

    /// Lets a fact end the channels that it concerns.
    mutating func endChannels(_ fact: (inout ChannelMachine) -> ChannelMachine.Action) -> [SessionAction] {
        channels.keys.sorted().flatMap { change($0, fact) }
    }

    private mutating func change(
        _ identifier: String, _ fact: (inout ChannelMachine) -> ChannelMachine.Action
    ) -> [SessionAction] {
        guard var channel = channels[identifier] else { return [] }
        let action = fact(&channel)
        guard action != .none else { return [] }
        channels[identifier] = channel
        connectDeadlines[identifier] = nil
        return [
            .write(.saveChannel(identifier: identifier, channel)),
            .deliver(.change(action), to: identifier),
        ]
    }

    private func registration(of id: ChannelID, _ identifier: String) -> SessionAction {
        .send(.register(.init(channelID: id.description, name: identifier)))
    }

    private func unregistration(of id: ChannelID) -> SessionAction {
        .send(.unregister(channelID: id.description, code: 200))
    }
}
