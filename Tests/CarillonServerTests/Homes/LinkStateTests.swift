import CarillonCore
import CarillonWire
import Synchronization
import Testing

@testable import CarillonServer

/// The capacity for calls, cuts, and lost answers of a link, without a clock.
@Suite(.timeLimit(.minutes(5)))
struct LinkStateTests {
    private final class Caller: FailingCaller {
        private let count = Mutex(0)

        var failures: Int { count.withLock { $0 } }

        func fail() { count.withLock { $0 += 1 } }
    }

    private let now = ContinuousClock.now
    private let device = DeviceSerial(1)
    private let queue = LinkQueueName.serial(DeviceSerial(1))

    private func state(calls: Int = 2, bytes: Int = 100) -> LinkState {
        var limits = LinkedHome.Limits()
        (limits.calls, limits.callBytes) = (calls, bytes)
        return LinkState(limits: limits)
    }

    private func session(_ connection: NotingSession = NotingSession()) -> LinkedSession {
        LinkedSession(
            connection, delay: LinkDelay(random: RandomSource { 0 }, longest: 0), limits: .init(), onLost: { _ in })
    }

    private func take(_ state: inout LinkState, bytes: Int = 10, isOfHome: Bool = false) -> LinkState.Taken {
        state.take(LinkCall(isOfHome: isOfHome) {}, to: queue, bytes: bytes, due: now)
    }

    private func pass(_ state: inout LinkState, _ caller: Caller, bytes: Int = 10) -> Bool {
        state.take(of: caller, bytes: bytes)
    }

    /// Returns the number of calls that a task takes until the queue is idle.
    private func run(_ state: inout LinkState, _ queue: LinkQueueName) -> Int {
        var count = 0
        while case .call = state.next(in: queue, at: now).step { count += 1 }
        return count
    }

    @Test func `calls beyond a limit are refused until others were sent`() {
        var state = state()
        #expect(take(&state) == .begins(queue))
        #expect(pass(&state, Caller()) == true)
        #expect(take(&state) == .refused)
        #expect(pass(&state, Caller(), bytes: 0) == false)
        #expect(take(&state, bytes: 0, isOfHome: true) == .waits, "a call of the home needs no capacity")
        #expect(state.waitingCalls == 2)
        #expect(run(&state, queue) == 2)
        #expect(state.waitingCalls == 1)
        #expect(take(&state, bytes: 91) == .refused)
        #expect(take(&state, bytes: 90) == .begins(queue))
        state.release(10)
        #expect(run(&state, queue) == 1)
        #expect(state.waitingCalls == 0)
        #expect(take(&state, bytes: 101) == .refused)
        #expect(take(&state, bytes: 100) == .begins(queue))
    }

    @Test func `a cut link drops unsent calls, except calls of the home, and accepts no calls until it is restored`() {
        var state = state(calls: 3)
        let (waiting, passing, answered) = (Caller(), Caller(), Caller())
        #expect(state.take(LinkCall {}, to: queue, bytes: 10, due: now, of: waiting) == .begins(queue))
        #expect(take(&state, bytes: 0, isOfHome: true) == .waits)
        #expect(pass(&state, passing) == true)
        #expect(pass(&state, answered) == true)
        state.forget(answered)
        let (callers, sessions) = state.cut()
        for caller in callers { caller.fail() }
        #expect([waiting, passing, answered].map(\.failures) == [1, 1, 0])
        #expect(sessions.isEmpty && state.cuts == 1)
        #expect(state.waitingCalls == 2, "calls that wait for no other call return their capacity themselves")
        #expect(take(&state) == .refused)
        #expect(pass(&state, Caller(), bytes: 0) == false)
        #expect(take(&state, bytes: 0, isOfHome: true) == .waits)
        #expect(run(&state, queue) == 2)
        state.restore()
        #expect(take(&state) == .begins(queue))
        #expect(state.cut().callers.count == 0)
        #expect(state.cuts == 2)
    }

    @Test func `a session ends with the link until it leaves`() {
        var state = state()
        let connection = NotingSession()
        let (first, second) = (session(connection), session(connection))
        for session in [first, second] {
            _ = state.take(LinkCall {}, to: queue, bytes: 0, due: now, as: session)
            _ = run(&state, queue)
        }
        #expect(state.arrived(connection)?.session === second && state.arrived(connection)?.queue == queue)
        state.leaves(first)
        #expect(state.arrived(connection)?.session === second, "the connection arrived again")
        #expect(state.cut().sessions.map(ObjectIdentifier.init) == [ObjectIdentifier(second)])
        state.leaves(second)
        #expect(state.arrived(connection) == nil)
        #expect(state.cut().sessions.count == 0)
    }

    @Test func `a lost answer ends the sessions of its device, or else its next arrival`() {
        var state = state(calls: 2)
        let (session, leaving, arriving) = (session(), session(), session())
        for session in [session, leaving, arriving] {
            _ = state.take(LinkCall {}, to: queue, bytes: 0, due: now, as: session)
            _ = run(&state, queue)
        }
        for session in [session, leaving] {
            session.connected(device)
            #expect(state.connect(device, to: queue) == true)
        }
        state.leaves(leaving)
        let ended = Set(state.lostAnswer(of: device).map(ObjectIdentifier.init))
        #expect(ended == [ObjectIdentifier(session), ObjectIdentifier(leaving)], "not the session without a device")
        #expect(state.connect(device, to: queue) == true)
        for session in [session, leaving, arriving] { state.forget(session, of: queue) }
        // As many devices are remembered as calls can wait.
        for number in Int64(1)...3 { #expect(state.lostAnswer(of: DeviceSerial(number)).count == 0) }
        #expect((Int64(1)...3).map { state.connect(DeviceSerial($0), to: queue) } == [false, false, true])
        #expect(state.connect(device, to: queue) == true, "the next arrival only")
    }

    @Test func `a waiter for the end of calls is resumed when no queue is busy`() async {
        let state = Mutex(state())
        let queues = [queue, .serial(DeviceSerial(2))]
        state.withLock { state in
            for queue in queues { _ = state.take(LinkCall {}, to: queue, bytes: 0, due: now) }
        }
        await withCheckedContinuation { continuation in
            let waits = state.withLock { $0.add(continuation) }
            #expect(waits)
            for (queue, expected) in zip(queues, [0, 1]) {
                let waiters = state.withLock { state in
                    _ = state.next(in: queue, at: now)
                    return state.next(in: queue, at: now).waiters
                }
                #expect(waiters.count == expected)
                for waiter in waiters { waiter.resume() }
            }
        }
        await withCheckedContinuation { continuation in
            let waits = state.withLock { $0.add(continuation) }
            #expect(!waits)
            continuation.resume()
        }
    }
}
