import Foundation
import NIOCore

extension PushService {
    private static let broadcastLimit = 5120

    /// Processes `POST /4/broadcasts/apps/BUNDLE`.
    mutating func broadcast(
        to bundleID: String, _ request: Submission, _ binding: inout ConnectionBinding, _ now: Timestamp
    ) -> SimulatorAnswer {
        if let reason = commonRefusal(request, methods: ["POST"], &binding, now) { return SimulatorAnswer(reason) }
        if let reason = ownerRefusal(bundleID, request, binding) { return SimulatorAnswer(reason) }
        let fields = request.fields
        if let topic = fields.topic, topic != bundleID, topic != bundleID + PushType.liveactivity.topicSuffix {
            return SimulatorAnswer(.topicMismatch)
        }
        let owner = ChannelBook.Owner(bundleID: bundleID, environment: request.environment)
        guard let id = fields.channelID else { return SimulatorAnswer(.missingChannelID) }
        guard Identifiers.isChannelID(id) else { return SimulatorAnswer(.badChannelID) }
        guard let type = fields.pushType else { return SimulatorAnswer(.missingPushType) }
        guard type.lowercased() == "liveactivity" else { return SimulatorAnswer(.invalidPushType) }
        if let text = fields.priority {
            guard let number = priority(text), number != 1 else { return SimulatorAnswer(.badPriority) }
        }
        guard let text = fields.expiration, let until = expiration(text) else { return SimulatorAnswer(.badExpirationDate) }
        guard request.payloadBytes > 0 else { return SimulatorAnswer(.payloadEmpty) }
        guard request.payloadBytes <= Self.broadcastLimit else { return SimulatorAnswer(.payloadTooLarge) }
        let payload = Array(request.payload.readableBytesView)
        guard let aps = Self.object(payload)?["aps"] as? [String: Any], let event = aps["event"] as? String,
            ["update", "end"].contains(event)
        else { return SimulatorAnswer(.badRequestPayload) }
        guard let channel = channels.channel(id, of: owner) else { return SimulatorAnswer(.channelNotRegistered) }
        guard channel.storesMessages || until == 0 else { return SimulatorAnswer(.badExpirationDate) }
        channels.sent(payload, to: id, of: owner)
        return SimulatorAnswer(status: 200)
    }

    /// Processes `POST`, `GET` and `DELETE /1/apps/BUNDLE/channels`.
    mutating func managed(
        channelsOf bundleID: String, _ request: Submission, _ binding: inout ConnectionBinding, _ now: Timestamp
    ) -> SimulatorAnswer {
        if let reason = commonRefusal(request, methods: ["POST", "GET", "DELETE"], &binding, now) {
            return SimulatorAnswer(reason)
        }
        if let reason = ownerRefusal(bundleID, request, binding) { return SimulatorAnswer(reason) }
        let owner = ChannelBook.Owner(bundleID: bundleID, environment: request.environment)
        if request.method == "POST" { return created(in: owner, request) }
        guard let id = request.fields.channelID else { return SimulatorAnswer(.missingChannelID) }
        guard Identifiers.isChannelID(id) else { return SimulatorAnswer(.badChannelID) }
        guard let channel = channels.channel(id, of: owner) else { return SimulatorAnswer(.channelNotRegistered) }
        if request.method == "DELETE" {
            _ = channels.delete(id, of: owner)
            return SimulatorAnswer(status: 204)
        }
        var answer = SimulatorAnswer(status: 200)
        answer.document = #"{"message-storage-policy":\#(channel.storesMessages ? 1 : 0),"push-type":"LiveActivity"}"#
        return answer
    }

    private mutating func created(in owner: ChannelBook.Owner, _ request: Submission) -> SimulatorAnswer {
        guard request.payloadBytes > 0, let body = Self.object(Array(request.payload.readableBytesView)) else {
            return SimulatorAnswer(.badRequestPayload)
        }
        guard let type = body["push-type"] else { return SimulatorAnswer(.missingPushType) }
        guard type as? String == "LiveActivity" else { return SimulatorAnswer(.invalidPushType) }
        guard body["message-storage-policy"] != nil else { return SimulatorAnswer(.missingChannelQueueSize) }
        guard let policy = Self.storagePolicy(in: request.payload) else { return SimulatorAnswer(.badRequestParams) }
        guard channels.count(of: owner) < rules.channelsPerApp else { return SimulatorAnswer(.cannotCreateChannelConfig) }
        let bytes = withUnsafeBytes(of: (identifiers.next(), identifiers.next())) { Data($0) }
        let id = bytes.base64EncodedString()
        channels.create(id, of: owner, storesMessages: policy == 1)
        var answer = SimulatorAnswer(status: 201)
        answer.channelID = id
        return answer
    }

    /// Returns the number 0 or 1; nil for `true`, a text and every other value.
    private static func storagePolicy(in payload: ByteBuffer) -> Int? {
        struct Policy: Decodable {
            enum CodingKeys: String, CodingKey { case number = "message-storage-policy" }
            var number: Double
        }
        // A value that is not a number is not a policy.
        let number = (try? JSONDecoder().decode(Policy.self, from: Data(payload.readableBytesView)))?.number
        return number == 0 ? 0 : number == 1 ? 1 : nil
    }

    /// Processes `GET /1/apps/BUNDLE/all-channels`.
    mutating func listed(
        channelsOf bundleID: String, _ request: Submission, _ binding: inout ConnectionBinding, _ now: Timestamp
    ) -> SimulatorAnswer {
        if let reason = commonRefusal(request, methods: ["GET"], &binding, now) { return SimulatorAnswer(reason) }
        if let reason = ownerRefusal(bundleID, request, binding) { return SimulatorAnswer(reason) }
        let owner = ChannelBook.Owner(bundleID: bundleID, environment: request.environment)
        var answer = SimulatorAnswer(status: 200)
        answer.document =
            "{\"channels\":[" + channels.identifiers(of: owner).map { "\"\($0)\"" }.joined(separator: ",") + "]}"
        return answer
    }

    /// Returns why a request for an app's channels is rejected, for any method.
    private func ownerRefusal(_ bundleID: String, _ request: Submission, _ binding: ConnectionBinding) -> Reason? {
        if let id = request.fields.requestID, !Identifiers.isUUID(id) { return .badRequestParams }
        guard Identifiers.isTopic(bundleID) else { return .badTopic }
        guard
            binding.allows(bundleID, of: bundleID, accounts: accounts, acceptsUnknownApps: rules.acceptsUnknownApps)
        else { return .topicMismatch }
        if let app = accounts.apps[bundleID]?.app, !app.hasBroadcast { return .featureNotEnabled }
        return nil
    }

    private static func object(_ bytes: [UInt8]) -> [String: Any]? {
        (try? JSONSerialization.jsonObject(with: Data(bytes))) as? [String: Any]
    }
}
