import CarillonCore
import CarillonWire
import HTTPTypes
import Hummingbird
import NIOCore
import Synchronization
import TestSupport
import Testing

@testable import CarillonServer

/// Event streams whose home answers late, or not at all.
@Suite(.timeLimit(.minutes(5)))
struct DelayedStreamTests {
    /// Stores the data written to it until it ends.
    private final class Peer: ResponseBodyWriter, Sendable {
        private struct Gone: Error {}

        private struct State {
            var text = ""
            var hasEnded = false
            var isGone = false
            var failedWrites = 0
        }

        private let state = Mutex(State())

        var text: String { state.withLock { $0.text } }
        var hasEnded: Bool { state.withLock { $0.hasEnded } }
        var failedWrites: Int { state.withLock { $0.failedWrites } }

        func goAway() { state.withLock { $0.isGone = true } }

        func write(_ buffer: ByteBuffer) throws {
            let isGone = state.withLock { state in
                if state.isGone { state.failedWrites += 1 } else { state.text += String(buffer: buffer) }
                return state.isGone
            }
            if isGone { throw Gone() }
        }

        func finish(_ trailingHeaders: HTTPFields?) { state.withLock { $0.hasEnded = true } }
    }

    private struct World: Sendable {
        let domain: HomeDomain
        let readiness: Readiness
        let device: Device
        let link: DelayedHome
        let peer: Peer
        let stream: Task<Void, any Error>

        var isEmpty: Bool { domain.runtime.population == (0, 0) }
    }

    /// Opens the stream of a device whose arrival takes this course.
    private func run(_ course: DelayedHome.Course, _ body: (World) async throws -> Void) async throws {
        let link = DelayedHome()
        let fixture = try await RouteFixture(link: { home in link.connected(to: home) })
        let domain = fixture.domain
        let app = try AppID.checked("com.example.app")
        _ = try await domain.apps.create(app)
        let device = try await domain.devices.register(app: app).device
        let feed = InboxFeed(of: device, homes: domain.homes, time: domain.time, limits: .init(), logger: domain.logger)
        let stream = InboxStream(
            feed: feed, readiness: fixture.readiness, time: domain.time, keepAlive: .milliseconds(5))
        let peer = Peer()
        link.next(course)
        // Ends with the stream, or with the test.
        let task = Task {
            var writer: any ResponseBodyWriter = peer
            try await stream.run(&writer)
        }
        defer {
            task.cancel()
            link.release()
        }
        try await body(
            World(
                domain: domain, readiness: fixture.readiness, device: device, link: link, peer: peer, stream: task))
    }

    @Test(arguments: [DelayedHome.Course.answeredLate, .delayed])
    func `a stream is written while it arrives, and leaves only after it has arrived`(
        course: DelayedHome.Course
    ) async throws {
        try await run(course) { world in
            await world.link.hasReached()
            try await eventually { world.peer.text.contains(": \n\n") }
            world.peer.goAway()
            try await eventually { world.peer.failedWrites > 0 }
            #expect(world.link.leaves == 0)
            world.link.release()
            await #expect(throws: (any Error).self) { try await world.stream.value }
            #expect(world.link.connections == 1 && world.link.leaves == 1)
            #expect(world.isEmpty)
        }
    }

    @Test func `a stream whose device is deleted before its home has answered ends at once`() async throws {
        try await run(.answeredLate) { world in
            await world.link.hasReached()
            try await world.domain.devices.delete(world.device)
            try await eventually { world.peer.hasEnded }
            #expect(world.peer.text.contains("event: end\ndata: {\"reason\":\"deviceGone\"}\n\n"))
            #expect(world.link.leaves == 0)
            world.link.release()
            try await world.stream.value
            #expect(world.link.leaves == 1)
            #expect(world.isEmpty)
        }
    }

    @Test func `a stream that arrives after the sessions were ended ends`() async throws {
        try await run(.delayed) { world in
            await world.link.hasReached()
            let notice = StopNotice(readiness: world.readiness, homes: world.domain.homes, notifySocket: nil)
            let stop = Task { try await notice.run() }
            stop.cancel()
            try await stop.value
            #expect(world.readiness.isStopping && !world.peer.hasEnded)
            world.link.release()
            try await eventually { world.peer.hasEnded }
            #expect(world.peer.text.contains("event: end\ndata: {\"reason\":\"serverStops\"}\n\n"))
            try await world.stream.value
            #expect(world.link.connections == 1)
            #expect(world.isEmpty)
        }
    }

    @Test func `a stream whose home cannot be reached ends without an event`() async throws {
        try await run(.unreachable) { world in
            try await world.stream.value
            #expect(world.peer.hasEnded && !world.peer.text.contains("event:"))
            #expect(world.link.connections == 0 && world.link.leaves == 0)
            #expect(world.isEmpty)
        }
    }
}
