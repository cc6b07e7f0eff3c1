import Logging
import Testing

@testable import CarillonCommand

/// How commands report a server that they cannot connect to.
struct ClientLogTests {
    @Test func `a failure to connect is one sentence`() throws {
        let failure = try #require(
            FailedConnection([
                "address": "wss://push.example.com/", "reason": "name not found", "advice": "Check the host name.",
                "retry-in-ms": .stringConvertible(Int64(2000)),
            ]))
        #expect(
            failure.sentence
                == "cannot connect to wss://push.example.com/: name not found; retrying in 2 s. Check the host name.")
        #expect(failure.retryMilliseconds == 2000 && failure.values.count == 5)
        let short = try #require(FailedConnection(["address": "http://h", "reason": "connection refused"]))
        #expect(short.sentence == "cannot connect to http://h: connection refused; retrying")
        #expect(short.values.count == 3)
    }

    @Test func `another event is none`() {
        #expect(FailedConnection([:]) == nil)
        #expect(FailedConnection(["reason": "x"]) == nil)
    }

    @Test func `the log of a command has warnings and no more`() {
        let logger = ClientLog.logger("carillon.listen", Printer(isJSON: false))
        #expect(logger.logLevel == .warning)
    }
}
