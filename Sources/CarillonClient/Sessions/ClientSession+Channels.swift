import CarillonBasics
import CarillonMessages
import CarillonWire

extension ClientSession {
    // MARK: Facts from the app

    mutating func connectRequested(
        _ identifier: String, as channelID: ChannelID, keys: SubscriptionKeys? = nil, wake: WakeMode? = nil,
        deadline: ContinuousClock.Instant?
    ) throws(PushError) -> [SessionAction] {
        var channel = channels[identifier] ?? ChannelMachine()
        try channel.connectRequested(as: channelID, keys: keys, wake: wake)
        channels[identifier] = channel
        channels.connectDeadlines[identifier] = deadline
        var actions: [SessionAction] = [.write(.saveChannel(identifier: identifier, channel))]
        switch phase {
        case .live: if user.pending == nil { actions.append(register(channel, channelID, identifier)) }
        case .resting: actions += proceed()
        default: break
        }
        return actions
    }

    /// The app wants the channel open, whatever it is.
    mutating func openRequested(
        _ identifier: String, as channelID: ChannelID, keys: SubscriptionKeys?, wake: WakeMode? = nil,
        deadline: ContinuousClock.Instant?
    ) throws(PushError) -> [SessionAction] {
        switch channels[identifier]?.state ?? .none {
        case .none, .closed, .error:
            return try connectRequested(identifier, as: channelID, keys: keys, wake: wake, deadline: deadline)
        case .connecting:
            if let deadline {
                channels.connectDeadlines[identifier] = min(deadline, channels.connectDeadlines[identifier] ?? deadline)
            }
            return []
        case .open, .disconnecting:
            return []
        }
    }

    mutating func disconnectRequested(_ identifier: String) -> [SessionAction] {
        guard let channel = channels[identifier] else { return [] }
        switch channel.state {
        case .open:
            let actions = changeQuietly(identifier) { $0.disconnectRequested() }
            return actions + (phase == .live ? channel.channelID.map { [unregistration(of: $0)] } ?? [] : [])
        case .connecting:
            return change(identifier) { $0.disconnectRequested() } + withdraw(channel.channelID)
        case .none, .disconnecting, .closed, .error:
            return []
        }
    }

    /// No code of the app knows the channel any more.
    mutating func channelDiscarded(_ identifier: String) -> [SessionAction] {
        let former = channels[identifier]
        guard former != nil || messages.buffers[identifier] != nil else { return [] }
        var actions = removeChannel(identifier)
        if former?.state == .open || former?.state == .connecting || former?.state == .disconnecting {
            actions += withdraw(former?.channelID)
        }
        return actions
    }

    /// Drops all that is known of a channel here; its readers hear that it is closed, unless it had ended.
    mutating func removeChannel(_ identifier: String) -> [SessionAction] {
        let former = channels[identifier]
        channels.remove(identifier)
        messages.buffers[identifier] = nil
        var actions: [SessionAction] = [.write(.removeChannel(identifier: identifier)), .dropMessages(of: identifier)]
        switch former?.state ?? .none {
        case .connecting, .open, .disconnecting:
            actions.append(.deliver(.notifyClosed(token: former?.endpoint?.token ?? ""), to: identifier))
        case .none, .closed, .error: break
        }
        return actions
    }

    // MARK: Facts from the server

    mutating func registrationAnswered(
        _ answer: ServerFrame.Registered, at now: ContinuousClock.Instant, random: Double
    ) -> [SessionAction] {
        guard let id = ChannelID(answer.channelID) else { return [] }
        let actions: [SessionAction]
        if answer.maySucceedLater {
            actions = postpone(id, answer, at: now, random: random)
        } else {
            channels.registrationRetries.answered(id, isRegistered: answer.status == 200, at: now)
            actions = end(registrationOf: id, with: answer)
        }
        return actions + registerAgain(at: now) + deliverTokens(at: now)
    }

    private mutating func end(
        registrationOf id: ChannelID, with answer: ServerFrame.Registered
    ) -> [SessionAction] {
        guard let identifier = channels.identifiers[id] else { return [] }
        if answer.status == 200, let endpoint = answer.pushEndpoint.flatMap(ChannelEndpoint.init) {
            return change(identifier) { $0.registered(at: endpoint) }
        }
        if answer.isRefusal {
            let notifications = change(identifier) { $0.registrationFailed(code: ChannelErrorCode.registrationRefused) }
            return note(notifications, .registrationRefused, "refused to open the channel \"\(identifier)\"", answer)
        }
        let notifications = change(identifier) { $0.registrationFailed(code: ChannelErrorCode.server.lowerBound) }
        return note(notifications, .serverUnavailable, "could not open the channel \"\(identifier)\"", answer)
    }

    /// The channel stays connecting, and is registered again when the server says that it may succeed.
    private mutating func postpone(
        _ id: ChannelID, _ answer: ServerFrame.Registered, at now: ContinuousClock.Instant, random: Double
    ) -> [SessionAction] {
        let hint = answer.retryAfterSeconds.map { max(.seconds(1), RetryAfter.duration(seconds: $0)) }
        channels.registrationRetries.refused(id, retryAfter: hint ?? settings.retryDelay, at: now, random: random)
        guard let identifier = channels.identifiers[id], channels[identifier]?.state == .connecting else { return [] }
        let reason = answer.code.map { String($0.prefix(60)) } ?? "status \(answer.status)"
        return [
            .noteFailure(
                .serverUnavailable,
                "The server cannot open the channel \"\(identifier)\" now (\(reason)); it is asked again.")
        ]
    }

    /// Registers the channel again whose time has come.
    mutating func registerAgain(at now: ContinuousClock.Instant) -> [SessionAction] {
        // All channels are registered when the server knows the user.
        guard user.pending == nil else {
            channels.registrationRetries.reset()
            return []
        }
        guard let dueAt = channels.registrationRetries.dueAt, dueAt <= now else { return [] }
        let connecting = Set(channels.ids(in: .connecting))
        let due = channels.registrationRetries.timePassed(to: now, wanted: connecting)
        guard let id = due, let identifier = channels.identifiers[id], let channel = channels[identifier] else { return [] }
        return [register(channel, id, identifier)]
    }

    mutating func unregistrationAnswered(
        _ channelID: String, status: Int, at now: ContinuousClock.Instant, random: Double
    ) -> [SessionAction] {
        guard let id = ChannelID(channelID) else { return [] }
        guard status < 500 else {
            channels.unregistrationRetryAt = now + schedule.delay(after: settings.retryDelay, random: random)
            return []
        }
        if channels.withdrawals.remove(id) != nil { return [.write(.removeWithdrawal(id))] }
        return channels.identifiers[id].map { change($0) { $0.unregistered() } } ?? []
    }

    mutating func channelEventReceived(
        _ frame: ChannelEventFrame, answered: Int?, at now: ContinuousClock.Instant
    ) -> [SessionAction] {
        // Its acknowledgement was lost with an earlier connection: the app was notified.
        if let answered { return [.send(MessageAnswer(id: frame.version, code: answered).frame)] }
        var actions: [SessionAction] = []
        if let id = ChannelID(frame.channelID) {
            if frame.event.isEnd, channels.withdrawals.remove(id) != nil { actions.append(.write(.removeWithdrawal(id))) }
            if let identifier = channels.identifiers[id] {
                actions += change(identifier) { channel in
                    switch frame.event {
                    case .closed: channel.closedByServer()
                    case .error(let code): channel.failedByServer(code: code)
                    case .pingFailed(let code): channel.pingFailed(code: code)
                    case .recovered: channel.recovered()
                    case .other: .none
                    }
                }
                if frame.event == .error(code: ChannelErrorCode.userChanged) {
                    // One that was asked for meanwhile would be open with nobody knowing of it.
                    actions += dropMessages(of: identifier) + withdraw(id)
                }
                if frame.event == .pingFailed(code: PushChannelEvent.PingFailure.tokenLost.code) { tokenLost(identifier) }
            }
        }
        actions += deliverTokens(at: now)
        let code = if case .other = frame.event { ResultCode.notDelivered } else { ResultCode.delivered }
        let answer = MessageAnswer(id: frame.version, code: code)
        // The end of a channel says the same however often it comes; news of its backend does not.
        switch frame.event {
        case .pingFailed, .recovered: actions.append(.write(.saveAnswer(answer)))
        case .closed, .error, .other: break
        }
        return actions + [.send(answer.frame)]
    }

    // MARK: Time

    mutating func connectTimedOut(_ identifier: String) -> [SessionAction] {
        channels.connectDeadlines[identifier] = nil
        guard let channel = channels[identifier], channel.state == .connecting else { return [] }
        return change(identifier) { $0.connectTimedOut() } + withdraw(channel.channelID)
    }

    /// Unregisters a channel that nobody wants: its registration may have reached the server even though no answer did.
    private mutating func withdraw(_ id: ChannelID?) -> [SessionAction] {
        guard let id, registration.identity != nil else { return [] }
        channels.withdrawals.insert(id)
        return [.write(.saveWithdrawal(id))] + (phase == .live ? [unregistration(of: id)] : [])
    }

    // MARK: Parts of the above

    /// What a new connection begins with.
    func catchUp() -> [SessionAction] { (user.pending == nil ? registrations() : []) + unregistrations() }

    func registrations() -> [SessionAction] {
        channels.machines.sorted { $0.key < $1.key }.compactMap { identifier, channel in
            guard channel.state == .connecting, let id = channel.channelID else { return nil }
            return register(channel, id, identifier)
        }
    }

    /// The user is another one. Channels that are open fail with news of their own; the others have nobody else to say it.
    mutating func dropMessagesOfEnded() -> [SessionAction] {
        messages.buffers.keys.sorted().filter { channels[$0]?.receivesMessages != true }.flatMap { dropMessages(of: $0) }
    }

    /// What waits for the app was another user's.
    private mutating func dropMessages(of identifier: String) -> [SessionAction] {
        messages.buffers[identifier] = nil
        return [.write(.removeMessages(of: identifier)), .dropMessages(of: identifier)]
    }

    func unregistrations() -> [SessionAction] {
        (channels.ids(in: .disconnecting) + channels.withdrawals).sorted { $0.description < $1.description }.map(
            unregistration)
    }

    /// Lets a fact end the channels that it concerns.
    mutating func endChannels(_ fact: (inout ChannelMachine) -> ChannelMachine.Action) -> [SessionAction] {
        channels.machines.keys.sorted().flatMap { change($0, fact) }
    }

    mutating func change(
        _ identifier: String, _ fact: (inout ChannelMachine) -> ChannelMachine.Action
    ) -> [SessionAction] {
        guard var channel = channels[identifier] else { return [] }
        let action = fact(&channel)
        guard action != .none else { return [] }
        channels[identifier] = channel
        channels.connectDeadlines[identifier] = nil
        return [.write(.saveChannel(identifier: identifier, channel)), .deliver(action, to: identifier)]
    }

    /// Lets a fact change a channel of which the app is notified of nothing.
    private mutating func changeQuietly(
        _ identifier: String, _ fact: (inout ChannelMachine) -> ChannelMachine.Action
    ) -> [SessionAction] {
        guard var channel = channels[identifier] else { return [] }
        _ = fact(&channel)
        channels[identifier] = channel
        return [.write(.saveChannel(identifier: identifier, channel))]
    }

    private func note(
        _ notifications: [SessionAction], _ code: PushError.Code, _ what: String, _ answer: ServerFrame.Registered
    ) -> [SessionAction] {
        let reason = answer.code.map { ", \($0.prefix(60))" } ?? ""
        // Before the channel's readers hear of it, so that they can ask for the reason.
        return notifications.isEmpty
            ? [] : [.noteFailure(code, "The server \(what) (status \(answer.status)\(reason)).")] + notifications
    }

    private func register(_ channel: ChannelMachine, _ id: ChannelID, _ identifier: String) -> SessionAction {
        .send(.register(.init(channelID: id.description, name: identifier, wake: channel.wake?.rawValue)))
    }

    private func unregistration(of id: ChannelID) -> SessionAction {
        .send(.unregister(channelID: id.description, code: 200))
    }
}

extension ServerFrame.Registered {
    private var knownCode: ErrorCode? { code.flatMap(ErrorCode.init(rawValue:)) }

    /// Whether the server asks for the same registration again: by the code, where this version knows it. A server
    /// that sends no code can answer 429 to a registration beyond a rate.
    fileprivate var maySucceedLater: Bool { knownCode?.isRetryable ?? (status == 429) }

    /// Whether no later attempt can succeed without a change: by the code, where this version knows it.
    fileprivate var isRefusal: Bool {
        if let knownCode { return knownCode.registrationStatus == 400 }
        return (400..<500).contains(status)
    }
}
