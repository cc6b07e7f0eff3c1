import Testing

@testable import CarillonClient

struct KeepAliveTests {
    static let start = ContinuousClock.now

    static func make() -> KeepAlive { KeepAlive(interval: .seconds(30), answerTime: .seconds(10), at: start) }

    @Test func `an idle connection gets a ping, and ends without a pong`() {
        var keepAlive = Self.make()
        #expect(keepAlive.timerFired(at: Self.start + .seconds(29)) == .none)
        #expect(keepAlive.timerFired(at: Self.start + .seconds(30)) == .ping)
        #expect(keepAlive.timerFired(at: Self.start + .seconds(39)) == .none)
        #expect(keepAlive.timerFired(at: Self.start + .seconds(40)) == .dead)
    }

    @Test func `received data delays the ping`() {
        var keepAlive = Self.make()
        keepAlive.received(at: Self.start + .seconds(20))
        #expect(keepAlive.timerFired(at: Self.start + .seconds(30)) == .none)
        #expect(keepAlive.deadline == Self.start + .seconds(50))
    }

    @Test func `an answer restarts the idle time`() {
        var keepAlive = Self.make()
        _ = keepAlive.timerFired(at: Self.start + .seconds(30))
        keepAlive.received(at: Self.start + .seconds(35))
        #expect(keepAlive.timerFired(at: Self.start + .seconds(40)) == .none)
        #expect(keepAlive.timerFired(at: Self.start + .seconds(65)) == .ping)
    }
}
