import CarillonCore
import TestSupport
import Testing

@testable import CarillonServer

/// Listeners that are opened again.
@Suite(.timeLimit(.minutes(5)))
struct ListenerKeeperTests {
    @Test func `a listener that closes at once again and again is logged once, and counts as closed until it stays open`()
        async throws
    {
        let readiness = Readiness()
        let log = LogCatcher()
        let keeper = ListenerKeeper(
            place: .address(host: "127.0.0.1", port: 1),
            limits: .init(delay: .milliseconds(1), steady: .seconds(12)), readiness: readiness, logger: log.logger)
        var openings = 0
        try await keeper.run(until: { openings == 11 }) { opened in
            openings += 1
            #expect(readiness.hasClosedListener == (openings > 1))
            opened()
            #expect(readiness.hasClosedListener == (openings > 1))
            if openings == 11 { try await eventually { !readiness.hasClosedListener } }
        }
        #expect(openings == 11)
        #expect(!readiness.hasClosedListener)
        #expect(log.lines.count { $0.contains("listener closed") } == 1, "\(log.text)")
        #expect(log.lines.count { $0.contains("listener is open again") } == 1, "\(log.text)")
    }
}
