import Testing

@testable import CarillonClient

struct ReconnectScheduleTests {
    static let backOff = PushClient.BackOff(initial: .seconds(1), maximum: .seconds(10), jitter: 0.5)

    @Test func `the wait doubles up to the maximum and begins anew after a success`() {
        var schedule = ClientReconnectSchedule(Self.backOff)
        #expect((0..<6).map { _ in schedule.failed(random: 0) } == [1, 2, 4, 8, 10, 10].map { .seconds($0) })
        schedule.succeeded()
        #expect(schedule.failed(random: 0) == .seconds(1))
    }

    @Test func `chance shortens the wait by the jitter at most`() {
        var schedule = ClientReconnectSchedule(Self.backOff)
        #expect(schedule.failed(random: 0.5) == .milliseconds(750))
        #expect(schedule.failed(random: 1) == .seconds(1))
    }

    @Test func `a thousand failures do not overflow`() {
        var schedule = ClientReconnectSchedule(Self.backOff)
        for _ in 0..<1000 { _ = schedule.failed(random: 0) }
        #expect(schedule.failed(random: 0) == .seconds(10))
    }

    @Test func `a long maximum is reached after 30 doublings at most`() {
        let backOff = PushClient.BackOff(initial: .nanoseconds(1), maximum: .seconds(3600), jitter: 0)
        var schedule = ClientReconnectSchedule(backOff)
        let waits = (0..<33).map { _ in schedule.failed(random: 0) }
        #expect(Array(waits.suffix(4)) == [1 << 29, 1 << 30, 1 << 30, 1 << 30].map { .nanoseconds($0) })
    }

    @Test func `the wait doubles when the server asks for no wait`() {
        var schedule = ClientReconnectSchedule(Self.backOff)
        let waits = (0..<5).map { _ in schedule.failed(hint: .zero, random: 0) }
        #expect(waits == [1, 2, 4, 8, 10].map { .seconds($0) })
        #expect(schedule.failed(hint: .seconds(30), random: 0) == .seconds(30))
        #expect(schedule.failed(hint: nil, random: 0) == .seconds(10))
    }

    @Test func `no hint is longer than a day`() {
        let schedule = ClientReconnectSchedule(Self.backOff)
        #expect(schedule.delay(after: .seconds(86_400), random: 0.999) == .seconds(86_400))
        #expect(schedule.delay(after: .seconds(1_000_000), random: 0) == .seconds(86_400))
    }

    @Test(arguments: [0, 0.5, 0.999]) func `a hint of the server is never undercut`(_ random: Double) {
        let schedule = ClientReconnectSchedule(Self.backOff)
        #expect(schedule.delay(after: .seconds(30), random: random) >= .seconds(30))
        #expect(schedule.delay(after: .seconds(30), random: random) < .seconds(38))
    }
}
