import CarillonCore
import CarillonWire
import HTTPTypes
import Logging
import Synchronization
import TestStores
import TestSupport
import Testing

@testable import CarillonServer

/// How many lines clients can cause.
@Suite(.timeLimit(.minutes(5)))
struct BoundedLogTests {
    private final class Ticks: Sendable {
        private let now = Mutex<Int64>(0)
        var source: TickSource { TickSource { self.now.withLock { $0 } } }
        func pass(seconds: Int64) { now.withLock { $0 += seconds * 1_000_000_000 } }
    }

    private let catcher = LogCatcher()
    private let ticks = Ticks()

    @Test func `a line is written once a minute for each app, with a count, and lines below notice pass`() {
        let log = BoundedLog.of(catcher.logger, ticks: ticks.source)
        let logger = log.logger
        for number in 0..<10 {
            for app in ["a", "b"] { logger.warning("cannot ask", metadata: ["app": "\(app)", "reason": "\(number)"]) }
            logger.info("ready")
        }
        #expect(catcher.lines.count { $0.hasPrefix("warning") } == 2)
        #expect(catcher.lines.count { $0 == "info ready" } == 10)
        log.flush()
        #expect(catcher.lines.count == 12)
        ticks.pass(seconds: 60)
        log.flush()
        #expect(
            Set(catcher.lines.dropFirst(12)) == [
                "warning cannot ask app=a reason=9 withheld=9", "warning cannot ask app=b reason=9 withheld=9",
            ])
        logger.warning("cannot ask", metadata: ["app": "a"])
        #expect(catcher.lines.count == 14)
    }

    @Test func `a logger is bounded once, and a copy with another level has the same limits`() {
        let log = BoundedLog.of(catcher.logger, ticks: ticks.source)
        #expect(BoundedLog.of(log.logger) === log)
        var quiet = log.logger
        quiet.logLevel = .error
        quiet.warning("x")
        quiet.error("y")
        log.logger.error("y")
        #expect(catcher.lines == ["error y"])
    }

    @Test func `refused registrations write one line a minute while the app's server is down, and one when it is back`()
        async throws
    {
        let backend = ApprovalHookTests.Backend()
        backend.answer.withLock { $0 = .failed("connection refused") }
        let routes = try await RouteFixture(
            approvalHookCaller: backend.caller, ticks: ticks.source, logger: catcher.logger)
        func device(of app: String) async throws -> String {
            _ = try await routes.request(.post, "/v1/apps", key: routes.admin, #"{"id":"\#(app)"}"#)
            _ = try await routes.request(
                .put, "/v1/apps/\(app)/veto", key: routes.admin, #"{"url":"https://back.example.com/veto"}"#)
            return try await routes.request(
                .post, "/v1/keys", key: routes.admin, #"{"role":"client","app":"\#(app)"}"#)["secret"]
        }
        func register(_ key: String) async throws -> Int {
            try await routes.request(.post, "/v1/devices", key: key, #"{"locale":"de"}"#).status
        }
        let keys = [try await device(of: "com.example.one"), try await device(of: "com.example.two")]
        for _ in 0..<50 { for key in keys { #expect(try await register(key) == 503) } }
        #expect(
            catcher.lines.sorted()
                == ["com.example.one", "com.example.two"].map {
                    "warning the approval hook of an app did not answer app=\($0) reason=connection refused"
                })
        ticks.pass(seconds: 60)
        #expect(try await register(keys[0]) == 503)
        #expect(
            catcher.lines.last
                == "warning the approval hook of an app did not answer app=com.example.one reason=connection refused withheld=49"
        )
        backend.answers(200)
        for _ in 0..<3 { #expect(try await register(keys[0]) == 201) }
        #expect(catcher.lines.count == 4)
        #expect(catcher.lines.last == "notice the approval hook of an app answers again app=com.example.one")
        // An app's server that fails with each second request writes no more lines than that.
        for number in 0..<40 {
            backend.answers(number.isMultiple(of: 2) ? 500 : 200)
            _ = try await register(keys[0])
        }
        #expect(catcher.lines.count == 4)
    }

    @Test func `requests that meet a fault of the store write one line a minute`() async throws {
        let store = try await stores.open()
        let routes = try await RouteFixture(store: store, ticks: ticks.source, logger: catcher.logger)
        let device = try await routes.device()
        try await stores.makeUnreadable(.deviceProfiles, in: store)
        for _ in 0..<20 { #expect(try await routes.request(.get, "/v1/device", key: device.credential).status >= 500) }
        #expect(catcher.lines.count { $0.contains("cannot use the store; refusing a request") } == 1, "\(catcher.lines)")
    }
}
