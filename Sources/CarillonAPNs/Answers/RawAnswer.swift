import CarillonBasics

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// What came back for one request, before it is read.
struct RawAnswer: Equatable, Sendable {
    /// What the answer to a push that was accepted does not have.
    private struct Rest: Equatable, Sendable {
        var requestID: String?
        var channelID: String?
        var retryAfter: String?
        var body: [UInt8] = []
        var rejection: APNsRejection?
    }

    var status: Int
    var id: String?
    var uniqueID: String?
    /// One at most, in an array so that it stands elsewhere: answers are many, and handed on often.
    private var rest: [Rest] = []

    init(status: Int) { self.status = status }

    private var details: Rest {
        get { rest.first ?? Rest() }
        _modify {
            if rest.isEmpty { rest.append(Rest()) }
            yield &rest[0]
        }
    }

    var requestID: String? {
        get { details.requestID }
        set { details.requestID = newValue }
    }
    var channelID: String? {
        get { details.channelID }
        set { details.channelID = newValue }
    }
    var retryAfter: String? {
        get { details.retryAfter }
        set { details.retryAfter = newValue }
    }
    var body: [UInt8] {
        get { details.body }
        _modify { yield &details.body }
    }
    /// The refusal that it is, once it was read.
    var rejection: APNsRejection? {
        get { details.rejection }
        set { details.rejection = newValue }
    }

    /// Whether the status is one of success.
    var isSuccess: Bool { (200...299).contains(status) }

    /// Whether it is the service's consent. What the ``AnswerRule`` of its request does not take for consent has a refusal.
    var isAccepted: Bool { isSuccess && rejection == nil }

    /// Whether the answer shows that the service takes the credentials: the service accepted the request, or refused it for a
    /// reason that has nothing to do with them.
    ///
    /// An answer of success without an ID and a refusal without a reason are not the service's, and a service in trouble may
    /// not have looked at the credentials.
    var showsThatCredentialsAreTaken: Bool {
        if isSuccess { return id != nil || requestID != nil }
        let rejection = self.rejection ?? APNsRejection(self)
        guard let reason = rejection.reason, (400...499).contains(status) else { return false }
        return rejection.kind != .fixCredentials && rejection.kind != .unknown && reason != .tooManyProviderTokenUpdates
    }

    /// The answer with its refusal read.
    func read() -> RawAnswer {
        guard !isSuccess else { return self }
        return refused()
    }

    /// Returns the answer with a refusal, for any status.
    func refused() -> RawAnswer {
        guard rejection == nil else { return self }
        var answer = self
        answer.rejection = APNsRejection(self)
        return answer
    }
}

/// Reads answers; nothing that a server can say makes an answer unreadable.
extension APNsResponse {
    init(_ answer: RawAnswer) {
        self.init(
            outcome: answer.isAccepted ? .accepted : .rejected(answer.rejection ?? APNsRejection(answer)),
            status: answer.status, id: answer.id, uniqueID: answer.uniqueID, requestID: answer.requestID)
    }
}

extension APNsRejection {
    /// What the service writes into the body of a refusal, and into a GOAWAY.
    private struct Body: Decodable {
        var reason: String?
        var timestamp: Double?

        /// Nil for an empty text, which is no reason.
        var knownReason: APNsReason? {
            reason.flatMap { $0.isEmpty ? nil : APNsReason(rawValue: APNsRejection.cut($0)) }
        }

        enum CodingKeys: String, CodingKey { case reason, timestamp }

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            // What is of another type than documented takes nothing else with it.
            reason = try? container.decode(String.self, forKey: .reason)
            timestamp =
                (try? container.decode(Double.self, forKey: .timestamp))
                ?? (try? container.decode(String.self, forKey: .timestamp)).flatMap(Double.init)
        }
    }

    init(_ answer: RawAnswer) {
        let body = Self.decode(answer.body)
        let reason = body?.knownReason
        self.init(
            status: answer.status, reason: reason,
            text: reason == nil && !answer.body.isEmpty
                ? Self.cut(String(decoding: answer.body.prefix(1024), as: UTF8.self)) : nil,
            invalidSince: answer.status == 410 ? body?.timestamp.flatMap(Self.date) : nil,
            retryAfter: answer.retryAfter.flatMap {
                RetryAfter.duration($0, at: Int64(Date.now.timeIntervalSince1970 * 1000))
            })
    }

    /// Nil for what is no time between 1970 and the year 10000, so that nobody meets it further on.
    private static func date(_ milliseconds: Double) -> Date? {
        guard (0..<253_402_300_800_000).contains(milliseconds) else { return nil }
        return Date(timeIntervalSince1970: milliseconds / 1000)
    }

    static func reason(in body: [UInt8]) -> APNsReason? { decode(body)?.knownReason }

    /// A stranger's text, at most 512 bytes of it.
    private static func cut(_ text: String) -> String {
        var text = text
        while text.utf8.count > 512 { text.unicodeScalars.removeLast() }
        return text
    }

    private static func decode(_ body: [UInt8]) -> Body? {
        var body = body[...]
        if body.starts(with: [0xEF, 0xBB, 0xBF]) { body = body.dropFirst(3) }
        body = body.drop { [0x20, 0x09, 0x0A, 0x0D].contains($0) }
        guard body.first == UInt8(ascii: "{") else { return nil }
        do {
            return try JSONDecoder().decode(Body.self, from: Data(body))
        } catch {
            // Another program than the service answered; its text is kept.
            return nil
        }
    }
}
