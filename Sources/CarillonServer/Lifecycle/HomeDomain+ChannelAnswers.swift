import CarillonCore
import CarillonWire

/// Publishes a notification of a Matrix server to a channel. A notification that is published twice is delivered twice, as if the
/// Matrix server had repeated it.
struct PublishNotification: HomeQuestion {
    typealias Answer = Void

    var shard: Shard?
    var token: String
    /// Nil for a notification that is too large. It still counts in the rate limits of the channel.
    var body: [UInt8]?
    var ttlSeconds: Int64
}

/// Opens a channel for a device that sent the request through its socket.
struct OpenChannel: HomeQuestion {
    /// The owner of the channel.
    enum Owner: Sendable {
        case device(DeviceSerial)
        /// A client without registration, which is stored with its first channel.
        case userAgent(UserAgentID, app: AppID)
    }

    struct Answer: Sendable {
        var device: DeviceSerial
        var token: String
    }

    var owner: Owner
    var id: ChannelID
    var name: String?
    var vapidKey: [UInt8]?
    var wake: WakeMode?
    var address: NetworkAddress?

    /// The owner determines the home. A user agent from before ids had shards can belong to another shard than its hash.
    var shard: Shard? { nil }
}

/// Closes a channel for a device that sent the request through its socket.
struct CloseChannel: HomeQuestion {
    typealias Answer = Void

    var device: DeviceSerial
    var id: ChannelID

    var shard: Shard? { Shard(of: device) }
}

extension HomeDomain {
    /// Adds the answers to questions about channels and their messages.
    func addChannelAnswers(to answers: inout HomeAnswers) {
        answers.on(PublishNotification.self, at: self) { home, question in
            try await home.publish(question)
        }
        answers.on(OpenChannel.self, at: self) { home, question in
            try await home.open(question)
        }
        answers.on(CloseChannel.self, at: self) { home, question in
            try await home.close(question)
        }
    }

    /// Publishes a notification at the home of the device that owns the channel of the token.
    func publishAtHome(_ token: String, _ body: [UInt8]?, ttlSeconds: Int64) async throws {
        var notification = PublishNotification(token: token, body: body, ttlSeconds: ttlSeconds)
        guard !homes.isOne, let contents = shared.tokens.open(token) else { return try await publish(notification) }
        // This also applies if this home has the device, because the question waits while the device moves.
        notification.shard = Shard(of: contents.device)
        try await others.ask(notification)
    }

    private func publish(_ notification: PublishNotification) async throws {
        let channel = try await publisher.channel(of: notification.token)
        guard let body = notification.body else { return try publisher.admitMessage(to: channel, by: nil) }
        let message = PublishRequest(body: body, coding: ContentCoding(.identity), ttl: notification.ttlSeconds)
        _ = try await publisher.publish(message, to: channel)
    }

    /// - Throws: ``HomeFault/moved(to:)`` if another home has the owner.
    func open(_ question: OpenChannel) async throws -> OpenChannel.Answer {
        let device: DeviceSerial
        switch question.owner {
        case .device(let serial):
            try home.checkHas(serial)
            device = serial
        case .userAgent(let userAgent, let app):
            if let known = try await devices.device(of: userAgent) {
                device = known.serial
            } else {
                device = try await devices.registerAnonymous(userAgent, app: app, from: question.address).serial
            }
        }
        let registration = try await home.inside(of: device) {
            try await channels.register(
                question.id, device: device, name: question.name, vapidKey: question.vapidKey, wake: question.wake,
                from: question.address)
        }
        return OpenChannel.Answer(device: device, token: registration.token)
    }

    /// - Throws: ``HomeFault/moved(to:)`` if another home has the device.
    func close(_ question: CloseChannel) async throws {
        try home.checkHas(question.device)
        _ = try await channels.unregister(question.id, device: question.device)
    }
}
