import Foundation
import Testing

@testable import CarillonAPNs

/// The interpretation of the service's answers.
struct AnswerTests {
    static func answer(_ status: Int, _ body: String, retryAfter: String? = nil) -> APNsResponse {
        var raw = RawAnswer(status: status)
        raw.body = Array(body.utf8)
        raw.retryAfter = retryAfter
        raw.wallSeconds = 1_780_000_000
        return APNsResponse(raw)
    }

    @Test(arguments: [
        (400, "BadCollapseId", APNsRejection.Kind.fixRequest), (400, "BadDeviceToken", .deadToken),
        (400, "BadExpirationDate", .fixRequest), (400, "BadMessageId", .fixRequest), (400, "BadPriority", .fixRequest),
        (400, "BadTopic", .fixRequest), (400, "DeviceTokenNotForTopic", .fixRequest),
        (400, "DuplicateHeaders", .fixRequest), (400, "IdleTimeout", .tryLater), (400, "InvalidPushType", .fixRequest),
        (400, "MissingDeviceToken", .fixRequest), (400, "MissingTopic", .fixRequest), (400, "PayloadEmpty", .fixRequest),
        (400, "TopicDisallowed", .fixCredentials), (400, "FeatureNotEnabled", .fixCredentials),
        (400, "MissingChannelId", .fixRequest), (400, "BadChannelId", .fixRequest),
        (400, "ChannelNotRegistered", .fixRequest), (400, "BadRequestParams", .fixRequest),
        (400, "BadRequestPayload", .fixRequest), (400, "MissingPushType", .fixRequest),
        (400, "CannotCreateChannelConfig", .fixRequest), (400, "MissingChannelQueueSize", .fixRequest),
        (403, "BadCertificate", .fixCredentials), (403, "BadCertificateEnvironment", .fixCredentials),
        (403, "ExpiredProviderToken", .fixCredentials), (403, "Forbidden", .fixCredentials),
        (403, "InvalidProviderToken", .fixCredentials), (403, "MissingProviderToken", .fixCredentials),
        (403, "UnrelatedKeyIdInToken", .fixCredentials), (403, "BadEnvironmentKeyIdInToken", .fixCredentials),
        (403, "BadEnvironmentKeyInToken", .fixCredentials), (403, "TopicMismatch", .fixCredentials),
        (404, "BadPath", .fixRequest), (405, "MethodNotAllowed", .fixRequest), (410, "ExpiredToken", .deadToken),
        (410, "Unregistered", .deadToken), (413, "PayloadTooLarge", .fixRequest),
        (429, "TooManyProviderTokenUpdates", .slowDown), (429, "TooManyRequests", .slowDown),
        (500, "InternalServerError", .tryLater), (503, "ServiceUnavailable", .tryLater),
        (503, "Service Unavailable", .tryLater), (503, "Shutdown", .tryLater), (400, "SomethingNew", .fixRequest),
        (599, "SomethingNew", .tryLater), (302, "SomethingNew", .unknown),
    ])
    func `each reason is kept and has its class`(status: Int, reason: String, kind: APNsRejection.Kind) {
        let rejection = Self.answer(status, "{\"reason\":\"\(reason)\"}").rejection
        #expect(rejection?.status == status)
        #expect(rejection?.reason == APNsReason(rawValue: reason))
        #expect(rejection?.kind == kind)
        let isKnown = APNsReason.known.contains(APNsReason(rawValue: reason))
        #expect(isKnown == !["SomethingNew", "Service Unavailable"].contains(reason))
    }

    @Test(
        arguments: [204, 302, 400, 401, 403, 404, 408, 410, 413, 421, 425],
        ["", "<html>gone</html>", "{}", #"{"error":"no"}"#, #"{"reason":""}"#, #"{"reason":7}"#])
    func `an answer without a reason is not the service's`(status: Int, body: String) throws {
        var raw = RawAnswer(status: status)
        raw.id = "the-id"
        raw.body = Array(body.utf8)
        let rejection = try #require(APNsResponse(try AnswerRule.push.result(raw).get()).rejection)
        #expect(rejection.kind == .unknown)
        #expect(rejection.status == status)
        #expect(APNsRetryPolicy.recommendedDelay(.init(number: 1, rejection: rejection)) == nil)
    }

    @Test func `only 429 and 5xx have a meaning without a reason`() {
        for status in 100..<600 {
            let kind = APNsRejection(status: status).kind
            #expect(kind == (status == 429 ? .slowDown : status >= 500 ? .tryLater : .unknown))
        }
    }

    @Test func `success without an ID is no consent`() throws {
        func isAccepted(_ rule: AnswerRule, _ status: Int, id: String? = nil, requestID: String? = nil) throws -> Bool {
            var raw = RawAnswer(status: status)
            raw.id = id
            raw.requestID = requestID
            let answer = try rule.result(raw).get()
            #expect(answer.isAccepted == APNsResponse(answer).isAccepted)
            return answer.isAccepted
        }
        #expect(try isAccepted(.push, 200, id: "x"))
        #expect(try !isAccepted(.push, 201, id: "x"))
        #expect(try isAccepted(.broadcast, 200, requestID: "x"))
        #expect(try isAccepted(.management, 204, requestID: "x"))
        for (rule, requestID) in [(AnswerRule.push, "x"), (.broadcast, nil), (.management, nil)] {
            let error = #expect(throws: APNsError.self) { try isAccepted(rule, 200, requestID: requestID) }
            #expect(error?.code == .answerInvalid)
            #expect(error?.mayHaveBeenProcessed == true)
        }
    }

    @Test(arguments: APNsReason.known) func `each known reason has its own advice`(reason: APNsReason) {
        let advice = APNsRejection(status: 0, reason: reason).advice
        #expect(advice.hasSuffix("."))
        #expect(advice != APNsRejection(status: 0).advice)
    }

    @Test func `the time of invalidation is milliseconds, and only with 410`() {
        let body = #"{"reason":"Unregistered","timestamp":1700000000123}"#
        #expect(Self.answer(410, body).rejection?.invalidSince == Date(timeIntervalSince1970: 1_700_000_000.123))
        #expect(Self.answer(400, body).rejection?.invalidSince == nil)
        #expect(Self.answer(410, #"{"reason":"Unregistered"}"#).rejection?.invalidSince == nil)
        for odd in [#""1700000000000""#, #" "nan""#, #" "-inf""#, "[]", "null", "1e19", "1e300", "-5"] {
            let rejection = Self.answer(410, #"{"reason":"Unregistered","timestamp":\#(odd)}"#).rejection
            #expect(rejection?.reason == .unregistered)
            #expect((rejection?.invalidSince != nil) == odd.hasPrefix("\""))
        }
    }

    @Test(arguments: ["", "<html>no</html>", "{", "[]", "{\"reason\":7}", String(repeating: "x", count: 100_000), "\u{0}"])
    func `any body becomes a typed result with its status`(body: String) {
        let rejection = Self.answer(502, body).rejection
        #expect(rejection?.status == 502)
        #expect(rejection?.reason == nil)
        #expect(rejection?.kind == .tryLater)
        #expect((rejection?.text?.utf8.count ?? 0) <= 512)
        #expect((rejection?.text == nil) == body.isEmpty)
    }

    @Test(arguments: ["\u{FEFF}", " ", "\r\n\t ", "\u{FEFF}\n"])
    func `text before the JSON of the body does not hide the reason`(prefix: String) {
        let rejection = Self.answer(400, prefix + #"{"reason":"BadDeviceToken"}"# + "\n").rejection
        #expect(rejection?.reason == .badDeviceToken)
        #expect(rejection?.text == nil)
        #expect(APNsRejection.reason(in: Array((prefix + #"{"reason":"Shutdown"}"#).utf8)) == .shutdown)
    }

    @Test func `an unknown reason is cut between characters, as its text is`() {
        let long = String(repeating: "ä", count: 5000)
        let reason = Self.answer(400, #"{"reason":"x\#(long)"}"#).rejection?.reason?.rawValue ?? ""
        #expect(reason == "x" + String(repeating: "ä", count: 255))
        let text = Self.answer(400, "x" + long).rejection?.text ?? ""
        #expect(text == reason)
        // Many marks on one letter are one character.
        let marks = Self.answer(400, "a" + String(repeating: "\u{301}", count: 5000)).rejection?.text ?? ""
        #expect(marks.utf8.count == 511)
    }

    @Test func `the standard policy keeps to the service's rules`() {
        func delay(_ status: Int, _ reason: APNsReason, _ number: Int = 1, retryAfter: Duration? = nil) -> Duration? {
            APNsRetryPolicy.standard.delay(
                .init(number: number, rejection: APNsRejection(status: status, reason: reason, retryAfter: retryAfter)))
        }
        #expect(delay(429, .tooManyRequests) == .seconds(1))
        #expect(delay(429, .tooManyRequests, 3) == .seconds(4))
        #expect(delay(429, .tooManyRequests, retryAfter: .seconds(9)) == .seconds(9))
        #expect(delay(429, .tooManyRequests, retryAfter: .zero) == .seconds(1))
        #expect(delay(429, .tooManyProviderTokenUpdates) == nil)
        #expect(delay(503, .serviceUnavailable) == .seconds(900))
        #expect(delay(500, .internalServerError, 2) == .seconds(1800))
        for (status, reason) in [
            (400, APNsReason.badDeviceToken), (400, .deviceTokenNotForTopic), (403, .forbidden), (410, .expiredToken),
            (410, .unregistered), (413, .payloadTooLarge),
        ] { #expect(delay(status, reason) == nil) }
        #expect(APNsRetryPolicy.never.delay(.init(number: 1, rejection: APNsRejection(status: 503))) == nil)
    }

    @Test(
        arguments: [
            ("7", .seconds(7)), ("4.0", .seconds(4)), ("4.2", .seconds(5)), ("99999999999999999999", .seconds(86_400)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", .zero), ("Fri, 31 Dec 9999 23:59:59 GMT", .seconds(86_400)),
            ("Thu, 28 May 2026 20:28:10 GMT", .seconds(90)), ("Thu, 28 May 2026 20:26:39 GMT", .zero), ("soon", nil),
            ("-1", nil),
        ] as [(String, Duration?)])
    func `retry-after is read as a number or as a date`(_ value: String, _ wait: Duration?) {
        #expect(Self.answer(429, "", retryAfter: value).rejection?.retryAfter == wait)
    }
}
