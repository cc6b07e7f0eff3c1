import CarillonBasics

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Creates, reads, lists and deletes the broadcast channels of one app in one environment.
///
/// An app can have 10,000 channels in each environment. The environments do not share channels.
public struct APNsChannels: Sendable {
    /// The messages that APNs stores for devices that are not reachable.
    public enum Storage: Int, Hashable, Sendable, CaseIterable {
        /// No message; broadcasts must expire immediately.
        case nothing = 0
        /// The most recent message, for at most 8 hours.
        case mostRecent = 1
    }

    /// A channel as APNs describes it.
    public struct Channel: Hashable, Sendable {
        /// The ID. It can have any length.
        public let id: String
        /// The messages that APNs stores.
        public let storage: Storage

        /// Makes a description, for instance in the tests of a backend.
        public init(id: String, storage: Storage) {
            self.id = id
            self.storage = storage
        }
    }

    /// The response of APNs to a request about channels.
    public struct Answer<Value: Sendable>: Sendable {
        /// The requested value, or the rejection.
        public enum Outcome: Sendable {
            /// APNs accepted the request.
            case done(Value)
            /// APNs rejected the request.
            case rejected(APNsRejection)
        }

        /// The requested value, or the rejection.
        public let outcome: Outcome
        /// The ID of the request, for Apple's support.
        public let requestID: String?

        /// The requested value; nil if APNs rejected the request.
        public var value: Value? {
            guard case .done(let value) = outcome else { return nil }
            return value
        }

        /// The rejection; nil if APNs accepted the request.
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

    /// Reads the settings of a channel.
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

    /// Reads the IDs of all channels.
    public func list() async throws(APNsError) -> Answer<[String]> {
        let answer = try await client.request(
            APNsRequestHead(method: .get, fields: []), path: path("all-channels"), body: .none, at: address,
            rule: .management)
        return try read(answer) { answer throws(APNsError) in try Self.decode(ListBody.self, answer.body).channels }
    }

    /// Deletes a channel. Its listeners receive no more broadcasts.
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

/// The parts of broadcast requests.
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
