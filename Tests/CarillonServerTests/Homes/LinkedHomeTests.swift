import CarillonCore
import CarillonWire
import TestSupport
import Testing

@testable import CarillonServer

/// Calls of connections and of other homes over a link.
@Suite(.timeLimit(.minutes(5)))
struct LinkedHomeTests {
    private let device = DeviceSerial(1)

    // MARK: Order and delay

    @Test(arguments: RandomSeed.some(0...2))
    func `the calls about one device reach the home in their order`(seed: UInt64) async throws {
        let world = LinkWorld(.random(seed: seed))
        let session = NotingSession()
        _ = try await world.arrive(1, as: session)
        for position in Int64(1)...40 { world.finish(position, of: 1) }
        try await world.read(1)
        world.finish(41, of: 1)
        world.link.leave(session, of: device)
        _ = try await world.arrive(1, as: NotingSession())
        let finished = (Int64(1)...41).map { NotingHome.Event.finished(LinkWorld.id($0)) }
        var expected: [NotingHome.Event] = [.arrives, .connected(device)]
        expected += finished[..<40]
        expected += [.read(device), finished[40], .left(device), .arrives, .connected(device)]
        #expect(world.home.events == expected)
    }

    @Test func `the first arrival of a device whose answer was lost fails`() async throws {
        let world = LinkWorld(.fixed(milliseconds: 0))
        world.link.cut()
        world.finish(1, of: 1)
        world.link.restore()
        let fault = await LinkWorld.fault { () async throws(HomeFault) in
            _ = try await world.arrive(1, as: NotingSession())
        }
        #expect(fault == .unreachable)
        #expect(world.home.events == [.arrives, .connected(DeviceSerial(1)), .left(DeviceSerial(1))])
        #expect(try await world.arrive(1, as: NotingSession()).device != nil)
    }

    @Test func `a call does not wait for the calls about another device`() async throws {
        let world = LinkWorld(.fixed(milliseconds: 1))
        world.home.hold()
        async let arrived = world.arrive(1, as: NotingSession())
        try await eventually { world.home.events == [.arrives] }
        try await world.read(2)
        #expect(world.home.events == [.arrives, .read(DeviceSerial(2))])
        world.home.release()
        let device = try await arrived.device
        #expect(device != nil)
    }

    @Test func `a session leaves behind its arrival, by the serial of its device`() async throws {
        let world = LinkWorld(.fixed(milliseconds: 1))
        world.home.hold()
        let session = NotingSession()
        async let arrived = world.arrive(1, as: session)
        try await eventually { world.home.events == [.arrives] }
        world.link.leave(session, of: LinkWorld.name(1))
        world.home.release()
        _ = try await arrived
        await world.link.flush()
        #expect(world.home.events == [.arrives, .connected(device), .left(device)])
        // A session that is not there is ignored.
        world.link.leave(session, of: device)
        await world.link.flush()
        #expect(world.home.events.count == 3)
    }

    @Test func `a call and its answer take the delay`() async throws {
        let world = LinkWorld(.fixed(milliseconds: 30))
        let began = ContinuousClock.now
        try await world.read(1)
        #expect(ContinuousClock.now - began >= .milliseconds(60))
        let response = try await world.link.handle(LinkWorld.request(.whole([7])))
        #expect(ContinuousClock.now - began >= .milliseconds(120))
        guard case .whole([7]) = response.body else {
            Issue.record("another body")
            return
        }
    }

    // MARK: A cut link

    @Test func `a call that was not sent is unreachable, and the home does nothing`() async throws {
        let world = LinkWorld(.fixed(milliseconds: 200_000))
        let session = NotingSession()
        async let arrival = LinkWorld.fault { () async throws(HomeFault) in _ = try await world.arrive(1, as: session) }
        async let read = LinkWorld.fault { () async throws(HomeFault) in try await world.read(2) }
        async let handled = LinkWorld.fault { () async throws(HomeFault) in
            _ = try await world.link.handle(LinkWorld.request())
        }
        try await eventually { world.link.waitingCalls == 3 }
        world.link.cut()
        let faults = await [arrival, read, handled]
        #expect(faults == [.unreachable, .unreachable, .unreachable])
        let later = await LinkWorld.fault { () async throws(HomeFault) in try await world.read(2) }
        #expect(later == .unreachable)
        #expect(world.home.events == [])
    }

    @Test func `a call that was sent has an unknown outcome, and takes effect`() async throws {
        let world = LinkWorld(.fixed(milliseconds: 1))
        world.home.hold()
        let session = NotingSession()
        async let arrival = LinkWorld.fault { () async throws(HomeFault) in _ = try await world.arrive(1, as: session) }
        async let handled = LinkWorld.fault { () async throws(HomeFault) in
            _ = try await world.link.handle(LinkWorld.request())
        }
        try await eventually { world.home.events.count == 2 }
        world.link.cut()
        let faults = await [arrival, handled]
        #expect(faults == [.outcomeUnknown, .outcomeUnknown])
        world.link.leave(session, of: LinkWorld.name(1))
        world.link.restore()
        world.home.release()
        try await eventually { [device] in
            let events = world.home.events
            return events.contains(.left(device)) && events.contains(.handled(wasCancelled: false))
        }
        let events = world.home.events
        #expect(!events.contains(.leftByName))
        #expect(events.filter { $0 == .connected(device) }.count == 1)
        try await eventually { session.events == [.ended(.linkLost)] }
        _ = try await world.arrive(1, as: NotingSession())
    }

    @Test func `sessions end with the link and leave the home, and devices come back`() async throws {
        let world = LinkWorld(.random(seed: 1))
        let sessions = [NotingSession(), NotingSession()]
        for (number, session) in zip(Int64(1)..., sessions) { _ = try await world.arrive(number, as: session) }
        world.link.cut()
        try await eventually { sessions.allSatisfy { $0.events == [.ended(.linkLost)] } }
        try await eventually { [DeviceSerial(1), DeviceSerial(2)].allSatisfy { world.home.events.contains(.left($0)) } }
        world.link.restore()
        let next = NotingSession()
        _ = try await world.arrive(1, as: next)
        // The former session is not there any more.
        world.link.leave(sessions[0], of: device)
        await world.link.flush()
        let events = world.home.events
        #expect(events.filter { $0 == .left(device) }.count == 1)
        #expect(next.events == [])
    }

    private struct Parts: AsyncSequence, Sendable {
        struct Iterator: AsyncIteratorProtocol {
            var count = 0

            mutating func next() async throws -> [UInt8]? {
                count += 1
                return [UInt8(count)]
            }
        }

        func makeAsyncIterator() -> Iterator { Iterator() }
    }

    @Test func `parts of a body pass until the link is cut`() async throws {
        let world = LinkWorld(.fixed(milliseconds: 1))
        let response = try await world.link.handle(LinkWorld.request(.parts(Parts())))
        guard case .parts(let parts) = response.body else {
            Issue.record("another body")
            return
        }
        var seen: [UInt8] = []
        let fault = await #expect(throws: HomeFault.self) {
            for try await part in parts {
                seen += part
                if seen.count == 3 { world.link.cut() }
            }
        }
        #expect(fault == .outcomeUnknown && seen == [1, 2, 3])
        world.link.restore()
        #expect(world.home.events == [.handles, .handled(wasCancelled: false)])
    }

    @Test func `a request with a body in parts ends at the home with the link, and so does a cancelled one`() async throws {
        let world = LinkWorld(.fixed(milliseconds: 1))
        world.home.hold()
        async let sent = LinkWorld.fault { () async throws(HomeFault) in
            _ = try await world.link.handle(LinkWorld.request(.parts(Parts())))
        }
        try await eventually { world.home.events == [.handles] }
        world.link.cut()
        let fault = await sent
        #expect(fault == .outcomeUnknown)
        world.home.release()
        try await eventually { world.home.events == [.handles, .handled(wasCancelled: true)] }
        world.link.restore()
        world.home.hold()
        // Ends with the answer of the home.
        let task = Task {
            await LinkWorld.fault { () async throws(HomeFault) in _ = try await world.link.handle(LinkWorld.request()) }
        }
        try await eventually { world.home.events.count == 3 }
        task.cancel()
        world.home.release()
        let later = await task.value
        #expect(later == nil)
        #expect(world.home.events.last == .handled(wasCancelled: true))
    }

    // MARK: Limits

    @Test func `calls beyond the limit are unreachable, and an answer that finds no room ends its session`() async throws {
        for limit in ["calls", "bytes"] {
            var limits = LinkedHome.Limits()
            if limit == "calls" { limits.calls = 1 } else { limits.callBytes = 300 }
            let world = LinkWorld(.fixed(milliseconds: 1), limits: limits)
            let (session, other) = (NotingSession(), NotingSession())
            _ = try await world.arrive(1, as: session)
            _ = try await world.arrive(2, as: other)
            world.home.hold()
            let arriving = NotingSession()
            async let arrival = world.arrive(1, as: arriving)
            try await eventually { world.home.sessions.count == 3 }
            #expect(world.link.waitingCalls == 0, "a call that the home has is not counted")
            // Behind the arrival of the same device.
            world.finish(1, of: 1)
            for position in Int64(2)...10 { world.finish(position, of: 1) }
            let fault = await LinkWorld.fault { () async throws(HomeFault) in
                _ = try await world.link.handle(LinkWorld.request(.whole(Array(repeating: 1, count: 300))))
            }
            #expect(fault == .unreachable, "\(limit)")
            try await eventually { session.events == [.ended(.linkLost)] }
            world.home.release()
            _ = try await arrival
            await world.link.flush()
            #expect(world.home.events.contains(.finished(LinkWorld.id(1))))
            #expect(!world.home.events.contains(.finished(LinkWorld.id(10))))
            #expect(other.events == [])
            #expect(world.link.waitingCalls == 0)
            try await world.read(1)
        }
    }

    // MARK: Ends

    @Test func `a link and the sessions that left are released`() async throws {
        weak var link: LinkedHome?
        weak var session: NotingSession?
        weak var linked: (any LiveSession)?
        do {
            let world = LinkWorld(.random(seed: 1))
            let first = NotingSession()
            _ = try await world.arrive(1, as: first)
            (link, session, linked) = (world.link, first, world.home.sessions.first)
            world.link.leave(first, of: device)
            await world.link.flush()
        }
        // Tasks of the link end.
        while link != nil || session != nil || linked != nil { try await Task.sleep(for: .milliseconds(5)) }
    }
}
