import Logging
import TestSupport
import Testing

@testable import CarillonClient

@Suite(.timeLimit(.minutes(5)))
struct LocalChannelsTests {
    private static let open = ChannelMachine(state: .open, channelID: nil, endpoint: nil, lastErrorCode: nil)

    @Test func `an identifier is claimed once until it is released, and each channel by itself`() {
        var channels = LocalChannels()
        channels.release("a")
        #expect({ channels.reserve("a") }())
        #expect({ !channels.reserve("a") }())
        #expect({ channels.reserve("b") }())
        channels.release("a")
        #expect({ channels.reserve("a") }())
        #expect({ !channels.reserve("b") }())
    }

    @Test func `a channel has one read queue, which knows the messages of earlier processes`() async {
        var channels = LocalChannels(storedBefore: ["a": 7])
        let queue = channels.readQueue(of: "a")
        #expect(channels.readQueue(of: "a") === queue)
        #expect(channels.readQueue(of: "b") !== queue)
        #expect(channels.readQueues.count == 2)
        #expect(await queue.next(inRun: queue.run) == .notLoaded(after: 0, upTo: 7))
    }

    @Test func `a read queue stays when the object of its channel is released`() {
        var channels = LocalChannels()
        let queue = channels.readQueue(of: "a")
        _ = channels.reserve("a")
        channels.release("a")
        #expect(channels.readQueue(of: "a") === queue)
    }

    @Test func `a channel without a reader causes one warning`() {
        var channels = LocalChannels()
        let queue = channels.readQueue(of: "a")
        let reader = queue.acquire()
        #expect({ !channels.warns(of: "a") }())
        if let reader { queue.release(reader) }
        #expect({ channels.warns(of: "a") }())
        #expect({ !channels.warns(of: "a") }())
        #expect({ channels.warns(of: "b") }())
    }

    @Test func `a watcher receives the present state first, and later ones until it is removed`() async {
        var channels = LocalChannels()
        let changes = channels.watch("a", ChannelMachine())
        let other = channels.watch("a", ChannelMachine())
        var states = changes.stream.makeAsyncIterator()
        #expect(await states.next()?.state == ChannelState.none)
        channels.post(Self.open, of: "b")
        channels.post(Self.open, of: "a")
        #expect(await states.next()?.state == .open)
        channels.unwatch(changes)?.finish()
        #expect(channels.unwatch(changes) == nil)
        #expect(await states.next() == nil)
        var later = other.stream.makeAsyncIterator()
        #expect(await later.next()?.state == .open, "a slow reader receives the newest state")
    }

    @Test func `a hook is replaced and removed, and each channel has its own`() throws {
        var channels = LocalChannels()
        #expect(channels.tokenDeliverer(of: "a") == nil)
        #expect(channels.setTokenDeliverer({ _ in }, of: "a") == nil)
        #expect(channels.tokenDeliverer(of: "a") != nil)
        #expect(channels.tokenDeliverer(of: "b") == nil)
        #expect(channels.setTokenDeliverer(nil, of: "a") != nil)
        #expect(channels.tokenDeliverer(of: "a") == nil)
    }

    /// Releases an identifier with its end, as a channel does.
    private final class Claim: Sendable {
        let runner: SessionRunner

        init(_ runner: SessionRunner) { self.runner = runner }

        deinit { runner.identifierReleased("a") }
    }

    @Test func `a hook that owns its channel can be removed`() throws {
        let directory = TemporaryDirectory()
        let store = try ClientStore(directory: directory.path)
        let stored = try store.load(server: "http://host", app: "com.example.app")
        let logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        let runner = SessionRunner(store: store, session: ClientSession(.init(), restoring: stored), logger: logger)
        #expect(runner.reserveIdentifier("a"))
        do {
            let claim = Claim(runner)
            runner.setTokenDelivery({ _ in withExtendedLifetime(claim) {} }, of: "a")
        }
        #expect(!runner.reserveIdentifier("a"))
        runner.setTokenDelivery(nil, of: "a")
        #expect(runner.reserveIdentifier("a"))
    }
}
