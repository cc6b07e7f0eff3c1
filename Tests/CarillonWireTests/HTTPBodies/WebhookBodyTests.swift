import CarillonBasics
import CarillonWire
import Testing

/// The JSON of a webhook's body and of a problem document.
struct WebhookBodyTests {
    @Test func `a ping has its token`() {
        let body = WebhookBody(type: WebhookBody.ping, timestamp: "2026-01-02T03:04:05Z", data: .init(token: "a/b"))
        let text = #"{"data":{"token":"a/b"},"timestamp":"2026-01-02T03:04:05Z","type":"channel.ping"}"#
        #expect(String(decoding: body.bytes, as: UTF8.self) == text)
    }

    @Test(arguments: ["", "gone", "\"\\\u{0}\u{1F}\n", "é😀\u{2028}"])
    func `an end of a channel has each text as it is`(_ text: String) throws {
        let body = WebhookBody(type: WebhookBody.disconnected, timestamp: text, data: .init(token: text, reason: text))
        let json = try #require(JSONValue(parsing: body.bytes))
        #expect(json["type"] == .string("channel.disconnected"))
        #expect(json["timestamp"] == .string(text))
        #expect(json["data"]?["token"] == .string(text))
        #expect(json["data"]?["reason"] == .string(text))
    }

    @Test(arguments: ["why", "\"\\\u{0}\n", "é"])
    func `a problem document has each text as it is`(_ text: String) throws {
        var document = ProblemDocument(Refusal(.tokenGone, text))
        let first = try #require(JSONValue(parsing: document.bytes))
        #expect(first["detail"] == .string(text))
        #expect(first["status"] == .integer(ErrorCode.tokenGone.status))
        #expect(first["appCode"] == nil)
        document.appCode = text
        #expect(JSONValue(parsing: document.bytes)?["appCode"] == .string(text))
    }
}
