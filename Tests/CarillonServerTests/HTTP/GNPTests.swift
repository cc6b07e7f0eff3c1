import CarillonCore
import CarillonWire
import HTTPTypes
import Hummingbird
import Logging
import Testing

@testable import CarillonServer

@Suite(.timeLimit(.minutes(5)))
struct GNPTests {
    @Test func `a sender beyond its rate is informed when to send again`() async throws {
        var rateLimits = RateLimits.Settings()
        rateLimits.channelMessages = Rate(perSecond: 1, burst: 1)
        let routes = try await RouteFixture(rateLimits, ticks: TickSource { 0 })
        let (_, credential, _) = try await routes.device()
        let token = try await routes.request(
            .post, "/v1/device/channels", key: credential, #"{"channelID":"11111111-2222-4333-8444-555555555555"}"#)["token"]
        func notify() async throws -> RouteFixture.Answer {
            try await routes.request(
                .post, "/GNP1.0?method=notify", "hello", headers: [.init(name: .gnpToken, value: token)])
        }
        let (first, second) = (try await notify(), try await notify())
        #expect(first.headers[.gnpCode] == "100 OK" && first.headers[.retryAfter] == nil)
        #expect(second.status == 200 && second.headers[.gnpCode] == "429 Rate Limited")
        #expect(second.headers[.retryAfter] == "2")
    }

    private struct ForeignError: Error {}

    @Test(
        arguments: [
            (ForeignError(), "500 Internal Error"), (StoreFault(.full, "x"), "507 Storage Unavailable"),
            (StoreFault(.unavailable, "x"), "507 Storage Unavailable"), (CancellationError(), "503 Server Stopping"),
        ] as [(any Error, String)])
    func `each answer that asks for a later attempt contains its time`(error: any Error, code: String) throws {
        let logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        let response = GNPRoutes.response(to: error, logger: logger)
        #expect(response.headers[.gnpCode] == code)
        #expect(try #require(response.headers[.retryAfter].flatMap { Int($0) }) > 0)
    }

    @Test func `an answer that is final has no time`() {
        let logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        for error in [GNPCode.missingToken, Refusal(.tokenGone, "x")] as [any Error] {
            #expect(GNPRoutes.response(to: error, logger: logger).headers[.retryAfter] == nil)
        }
    }
}
