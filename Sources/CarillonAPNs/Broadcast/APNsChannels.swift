import CarillonBasics

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The broadcast channels of one app in one environment: to create, read, list and delete.
///
/// An app may have 10,000 channels in each environment, and the environments know nothing of each other's.
public struct APNsChannels: Sendable {
    /// What the service keeps for devices that are not reachable.
    public enum Storage: Int, Hashable, Sendable, CaseIterable {
        /// Nothing; broadcasts must expire immediately.
        case nothing = 0
        /// The most recent message, for at most 8 hours.
        case mostRecent = 1
    }

    /// A channel as the service describes it.
    public struct Channel: Hashable, Sendable {
        /// The ID, of any length.
        public let id: String
        /// What the service keeps.
        public let storage: Storage

        /// Makes a description, for instance in the tests of a backend.
        public init(id: String, storage: Storage) {
            self.id = id
            self.storage = storage
        }
    }

    /// The service's answer to a request about channels.
    public struct Answer<Value: Sendable>: Sendable {
        /// What was asked for, or the refusal.
        public enum Outcome: Sendable {
            /// Done.
            case done(Value)
            /// The service refused.
            case rejected(APNsRejection)
        }

        /// What was asked for, or the refusal.
        public let outcome: Outcome
        /// The ID of the request, for Apple's support.
        public let requestID: String?

        /// What was asked for; nil when the service refused.
        public var value: Value? {
            guard case .done(let value) = outcome else { return nil }
            return value
        }

        /// The refusal; nil when there is none.
        public var rejection: APNsRejection? {
            guard case .rejected(let rejection) = outcome else { return nil }
            return rejection
        }
    }

    let client: APNsClient
    let bundleID: String
    let address: APNsEnvironment.Address

    /// Creates a channel for Live Activities.
    public func create(storing storage: Storage) async throws(APNsError) -> Answer<Channel> {
        let body = JSONWriter.object {
            $0.member("message-storage-policy", Int64(storage.rawValue))
            $0.member("push-type", "LiveActivity")
        }
        let head = APNsRequestHead(fields: [HeaderField(.contentType, "application/json")])
        let answer = try await client.request(
            head, path: path("channels"), body: RequestBody(body), at: address, rule: .management,
            isRepeatable: false)
        return try read(answer) { answer throws(APNsError) in
            guard let id = answer.channelID, !id.isEmpty else {
                throw APNsError(
                    .answerInvalid, "The service created a channel but did not return its ID.", mayHaveBeenProcessed: true)
            }
            return Channel(id: id, storage: storage)
        }
    }

    /// Reads how a channel is set.
    public func read(_ id: String) async throws(APNsError) -> Answer<Channel> {
        let answer = try await client.request(
            try head(.get, id), path: path("channels"), body: .none, at: address,
            rule: .management)
        return try read(answer) { answer throws(APNsError) in
            let body = try Self.decode(ChannelBody.self, answer.body)
            guard let storage = Storage(rawValue: body.policy) else {
                throw APNsError(.answerInvalid, "The service described a channel with storage policy \(body.policy).")
            }
            return Channel(id: id, storage: storage)
        }
    }

    /// The IDs of all channels.
    public func list() async throws(APNsError) -> Answer<[String]> {
        let answer = try await client.request(
            APNsRequestHead(method: .get, fields: []), path: path("all-channels"), body: .none, at: address,
            rule: .management)
        return try read(answer) { answer throws(APNsError) in try Self.decode(ListBody.self, answer.body).channels }
    }

    /// Deletes a channel. Its listeners get no more broadcasts.
    public func delete(_ id: String) async throws(APNsError) -> Answer<Void> {
        let answer = try await client.request(
            try head(.delete, id), path: path("channels"), body: .none, at: address, rule: .management,
            isRepeatable: false)
        return try read(answer) { _ throws(APNsError) in () }
    }

    private func path(_ what: String) -> String { "/1/apps/\(bundleID)/\(what)" }

    private func head(_ method: APNsRequestHead.Method, _ id: String) throws(APNsError) -> APNsRequestHead {
        APNsRequestHead(method: method, fields: [HeaderField(.apnsChannelID, try BroadcastPath.checked(id))])
    }

    private func read<Value: Sendable>(
        _ answer: RawAnswer, _ value: (RawAnswer) throws(APNsError) -> Value
    ) throws(APNsError) -> Answer<Value> {
        guard answer.isSuccess else {
            return Answer(outcome: .rejected(answer.rejection ?? APNsRejection(answer)), requestID: answer.requestID)
        }
        return Answer(outcome: .done(try value(answer)), requestID: answer.requestID)
    }

    private struct ChannelBody: Decodable {
        var policy: Int
        enum CodingKeys: String, CodingKey { case policy = "message-storage-policy" }
    }

    private struct ListBody: Decodable {
        var channels: [String]
    }

    private static func decode<Body: Decodable>(_ type: Body.Type, _ bytes: [UInt8]) throws(APNsError) -> Body {
        do {
            return try JSONDecoder().decode(type, from: Data(bytes))
        } catch {
            throw APNsError(.answerInvalid, "The service's answer about channels cannot be read.", cause: error)
        }
    }
}

/// What stands in the requests of broadcasts.
enum BroadcastPath {
    static func checked(_ id: String) throws(APNsError) -> String {
        guard !id.isEmpty, id.utf8.count <= 1024, NotificationRules.isPrintable(id) else {
            throw APNsError(
                .notificationInvalid, "A channel ID must be printable ASCII, unchanged as the service returned it.")
        }
        return id
    }

    static func bundleID(_ bundleID: String?) throws(APNsError) -> String {
        guard let bundleID, !bundleID.isEmpty,
            bundleID.utf8.allSatisfy({
                (0x30...0x39).contains($0) || (0x41...0x5A).contains($0 & 0xDF) || $0 == 0x2D || $0 == 0x2E || $0 == 0x5F
            })
        else {
            throw APNsError(
                .notificationInvalid, "Broadcasts need the app: set the client's bundleID to letters, digits, - and dots.")
        }
        return bundleID
    }
}
