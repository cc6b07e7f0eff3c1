import NIOCore

extension PushService {
    /// The values of a push's headers, after they were checked.
    private struct Push {
        var topic: String
        var type: PushType?
        var priority: Int
        var expiration: Int64?
    }

    /// Processes `POST /3/device/TOKEN`.
    mutating func pushed(
        to token: Substring, _ request: Submission, _ binding: inout ConnectionBinding, _ now: Timestamp
    ) -> SimulatorAnswer {
        if let reason = commonRefusal(request, methods: ["POST"], &binding, now) { return SimulatorAnswer(reason) }
        guard !token.isEmpty else { return SimulatorAnswer(.missingDeviceToken) }
        let push: Push
        switch checked(request, binding) {
        case .failure(let refusal): return SimulatorAnswer(refusal.reason)
        case .success(let checked): push = checked
        }
        guard request.payloadBytes > 0 else { return SimulatorAnswer(.payloadEmpty) }
        guard request.payloadBytes <= push.type?.payloadLimit ?? Self.limit(of: push.topic) else {
            return SimulatorAnswer(.payloadTooLarge)
        }
        guard Identifiers.isDeviceToken(token) else { return SimulatorAnswer(.badDeviceToken) }
        if rules.unknownDevices == .accept, devices.isEmpty { return SimulatorAnswer(status: 200) }
        let key = DeviceBook.Key(token: token.lowercased(), environment: request.environment)
        if let refusal = refusal(key, push.topic, now) { return refusal }
        return SimulatorAnswer(status: 200)
    }

    private static func limit(of topic: String) -> Int { PushType.suffix(of: topic) == ".voip" ? 5120 : 4096 }

    private struct Refusal: Error {
        var reason: Reason
    }

    private func checked(_ request: Submission, _ binding: ConnectionBinding) -> Result<Push, Refusal> {
        let fields = request.fields
        if let id = fields.id, !Identifiers.isUUID(id) { return .failure(Refusal(reason: .badMessageID)) }
        var type: PushType?
        if let name = fields.pushType {
            type = PushType(rawValue: name)
            guard type != nil else { return .failure(Refusal(reason: .invalidPushType)) }
        }
        var until: Int64?
        if let text = fields.expiration {
            until = expiration(text)
            guard until != nil else { return .failure(Refusal(reason: .badExpirationDate)) }
        }
        var importance = 10
        if let text = fields.priority {
            guard let number = priority(text), type?.allows(priority: number) ?? true else {
                return .failure(Refusal(reason: .badPriority))
            }
            importance = number
        }
        if let id = fields.collapseID, id.utf8.count > 64 { return .failure(Refusal(reason: .badCollapseID)) }
        let onlyTopic = binding.certificate.flatMap { $0.topics.count == 1 ? $0.topics.first : nil }
        guard let topic = fields.topic ?? onlyTopic, !topic.isEmpty else { return .failure(Refusal(reason: .missingTopic)) }
        guard Identifiers.isTopic(topic),
            let bundleID = type.map({ $0.bundleID(of: topic) }) ?? PushType.bundleID(of: topic)
        else { return .failure(Refusal(reason: .badTopic)) }
        if type == .location, binding.certificate != nil { return .failure(Refusal(reason: .forbidden)) }
        guard
            binding.allows(topic, of: bundleID, accounts: accounts, acceptsUnknownApps: rules.acceptsUnknownApps)
        else { return .failure(Refusal(reason: .topicDisallowed)) }
        return .success(Push(topic: topic, type: type, priority: importance, expiration: until))
    }

    private mutating func refusal(_ key: DeviceBook.Key, _ topic: String, _ now: Timestamp) -> SimulatorAnswer? {
        guard let device = devices[key] else {
            switch rules.unknownDevices {
            case .refuse: return SimulatorAnswer(.badDeviceToken)
            case .register where key.token == Identifiers.nobody: return SimulatorAnswer(.badDeviceToken)
            case .accept: return nil
            case .register:
                devices.put(Device(token: key.token, topic: topic, environment: key.environment), at: now)
                return nil
            }
        }
        guard device.topic == topic else { return SimulatorAnswer(.deviceTokenNotForTopic) }
        switch device.state {
        case .unregistered(let since): return SimulatorAnswer(.unregistered, timestamp: since)
        case .expired(let since): return SimulatorAnswer(.expiredToken, timestamp: since)
        case .active: break
        }
        if let limit = rules.requestsPerDeviceAndMinute, !devices.counted(key, limit: limit, at: now) {
            return SimulatorAnswer(.tooManyRequests)
        }
        return nil
    }

    /// Delivers an accepted push to its device.
    mutating func deliver(_ request: Submission, _ answer: SimulatorAnswer, _ binding: ConnectionBinding, at now: Timestamp)
    {
        guard !devices.isEmpty, let id = answer.id,
            case .device(let token) = Target(path: request.path, services: request.services)
        else { return }
        let fields = request.fields
        devices.accepted(
            APNsSimulator.DeliveredNotification(
                id: id, topic: fields.topic ?? binding.certificate?.topics.first ?? "", pushType: fields.pushType,
                priority: fields.priority.flatMap { Int($0) } ?? 10, collapseID: fields.collapseID,
                payload: Array(request.payload.readableBytesView), acceptedAt: now.milliseconds,
                expiresAt: expiry(fields.expiration, now)),
            for: DeviceBook.Key(token: token.lowercased(), environment: request.environment))
    }

    /// Returns the time until which a notification can wait. Without the header, this is the longest possible time.
    private func expiry(_ text: String?, _ now: Timestamp) -> Int64? {
        let longest = now + DeviceBook.longestStorage
        guard let seconds = text.flatMap(expiration) else { return longest.milliseconds }
        return seconds == 0 ? nil : min(Timestamp.seconds(seconds), longest).milliseconds
    }
}
