import CarillonBasics

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The response to one request, before its body is decoded.
struct RawAnswer: Equatable, Sendable {
    /// The fields that the response to an accepted push does not have.
    private struct Rest: Equatable, Sendable {
        var requestID: String?
        var channelID: String?
        var retryAfter: String?
        var wallSeconds: Int64 = 0
        var body: [UInt8] = []
        var rejection: APNsRejection?
    }

    var status: Int
    var id: String?
    var uniqueID: String?
    /// At most one element. The array stores it outside of the structure, because responses are many and are copied often.
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
    /// The time of the response by the client's wall clock, in seconds since 1970, which a date in `Retry-After` is compared
    /// with. The pool sets it only for a response with this field.
    var wallSeconds: Int64 {
        get { details.wallSeconds }
        set { details.wallSeconds = newValue }
    }
    var body: [UInt8] {
        get { details.body }
        _modify { yield &details.body }
    }
    /// The rejection, after the body was decoded.
    var rejection: APNsRejection? {
        get { details.rejection }
        set { details.rejection = newValue }
    }

    /// Whether the status is 2xx.
    var isSuccess: Bool { (200...299).contains(status) }

    /// Whether APNs accepted the request. A response that the ``AnswerRule`` of its request does not accept has a rejection.
    var isAccepted: Bool { isSuccess && rejection == nil }

    /// Whether the response shows that APNs accepts the push credentials: it accepted the request, or rejected it for a
    /// reason that is unrelated to the credentials.
    ///
    /// A successful response without an ID and a rejection without a reason do not come from APNs. A faulty APNs server may
    /// not have checked the credentials.
    var showsThatCredentialsAreTaken: Bool {
        if isSuccess { return id != nil || requestID != nil }
        let rejection = self.rejection ?? APNsRejection(self)
        guard let reason = rejection.reason, (400...499).contains(status) else { return false }
        return rejection.kind != .fixCredentials && rejection.kind != .unknown && reason != .tooManyProviderTokenUpdates
    }

    /// Returns the response with its rejection decoded.
    func read() -> RawAnswer {
        guard !isSuccess else { return self }
        return refused()
    }

    /// Returns the response with a rejection, for any status.
    func refused() -> RawAnswer {
        guard rejection == nil else { return self }
        var answer = self
        answer.rejection = APNsRejection(self)
        return answer
    }
}

/// Decodes responses. Every response can be decoded, with any body.
extension APNsResponse {
    init(_ answer: RawAnswer) {
        self.init(
            outcome: answer.isAccepted ? .accepted : .rejected(answer.rejection ?? APNsRejection(answer)),
            status: answer.status, id: answer.id, uniqueID: answer.uniqueID, requestID: answer.requestID)
    }
}

extension APNsRejection {
    /// The body of a rejection, and the debug data of a GOAWAY.
    private struct Body: Decodable {
        var reason: String?
        var timestamp: Double?

        /// The reason; nil for an empty text.
        var knownReason: APNsReason? {
            reason.flatMap { $0.isEmpty ? nil : APNsReason(rawValue: APNsRejection.cut($0)) }
        }

        enum CodingKeys: String, CodingKey { case reason, timestamp }

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            // A member of an undocumented type does not prevent the other members from being decoded.
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
            retryAfter: answer.retryAfter.flatMap { RetryAfter.duration($0, at: answer.wallSeconds * 1000) })
    }

    /// Returns nil for a time that is not between 1970 and the year 10000, so that no caller receives it.
    private static func date(_ milliseconds: Double) -> Date? {
        guard (0..<253_402_300_800_000).contains(milliseconds) else { return nil }
        return Date(timeIntervalSince1970: milliseconds / 1000)
    }

    static func reason(in body: [UInt8]) -> APNsReason? { decode(body)?.knownReason }

    /// Cuts a text from the network to at most 512 bytes.
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
            // The response comes from another program than APNs. Its text is kept.
            return nil
        }
    }
}
