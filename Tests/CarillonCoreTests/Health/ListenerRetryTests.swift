import CarillonCore
import Testing

struct ListenerRetryTests {
    private let start = ContinuousClock.now

    @Test func `a listener that closed is opened again after 200 ms, and abandoned after 10 seconds of failures`() {
        var retry = ListenerRetry()
        #expect(retry.closed(at: start) == .open(after: .milliseconds(200)))
        #expect(retry.openingFailed(at: start + .milliseconds(200)) == .open(after: .milliseconds(200)))
        #expect(retry.openingFailed(at: start + .milliseconds(9999)) == .open(after: .milliseconds(200)))
        #expect(retry.openingFailed(at: start + .seconds(10)) == .giveUp)
    }

    @Test func `each closing has its own time`() {
        var retry = ListenerRetry()
        _ = retry.closed(at: start)
        // It was open in the meantime.
        #expect(retry.closed(at: start + .seconds(60)) == .open(after: .milliseconds(200)))
        #expect(retry.openingFailed(at: start + .seconds(69)) == .open(after: .milliseconds(200)))
        #expect(retry.openingFailed(at: start + .seconds(70)) == .giveUp)
    }

    @Test func `one closing a minute is logged`() {
        var retry = ListenerRetry()
        let reported = [0, 200, 400, 59_999, 60_000, 119_000].filter {
            retry.isReported(at: start + .milliseconds($0))
        }
        #expect(reported == [0, 60_000])
    }

    @Test func `the first opening is tried once`() {
        let retry = ListenerRetry()
        #expect(!retry.hasClosed)
        #expect(retry.openingFailed(at: start) == .giveUp)
    }
}
