import CarillonCore
import CarillonWire
import Logging
import NIOPosix
import Synchronization
import TestStores
import TestSupport
import Testing

@testable import CarillonServer

/// The work that a killed server left pending for devices, and the state that is stored to the day.
@Suite(.timeLimit(.minutes(5)))
struct FormerChannelsTests {
    private final class Clock: Sendable {
        private let value = Mutex(TimeSource.system.now())
        var now: Timestamp { value.withLock { $0 } }
        func advance(seconds: Int64) { value.withLock { $0 = $0.adding(seconds: seconds) } }
    }

    private let clock = Clock()

    private func domain(over store: any Store) async throws -> HomeDomain {
        let clock = clock
        return try await HomeDomain(
            store: store, addresses: PublicURLs("https://push.example.com"),
            scheduler: .on(MultiThreadedEventLoopGroup.singleton),
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }), time: TimeSource { clock.now })
    }

    @Test func `channels of a former user are closed by the next server, when this one was killed before`() async throws {
        let store = try await stores.openKept()
        let id = try #require(ChannelID("6f3f1e0e-1111-4222-8333-444455556666"))
        let first = try await domain(over: store)
        let app = try #require(AppID("com.example.app"))
        _ = try await first.apps.create(app)
        let user = try #require(UserID("ada"))
        let device = try await first.devices.register(app: app, reporting: nil).device
        let signIn = RegistrationRequest.reports(DeviceProfile(), confirms: false, user: .signedIn(user))
        _ = try await store.changeRegistration(of: device.serial, at: clock.now) { _ in signIn }
        let channel = try await first.channels.register(
            id, device: device.serial, name: nil, vapidKey: nil, wake: nil
        ).channel
        _ = try await first.publisher.publish(
            PublishRequest(
                body: [1], coding: ContentCoding(.identity), ttl: 600, urgency: .normal, topic: nil), to: channel)
        await first.runtime.inbox.flush()
        // The device has another user in the store, and the server ended before it could report it.
        let signOut = RegistrationRequest.reports(DeviceProfile(), confirms: false, user: .signedOut)
        _ = try await store.changeRegistration(of: device.serial, at: clock.now) { _ in signOut }
        try await stores.close(store)

        let again = try await stores.reopen(store)
        let second = try await domain(over: again)
        #expect(try await again.channelsOfFormerUsers(of: nil, in: .all, limit: 10).count == 1)
        try await second.formerChannels.closeAll()
        #expect(try await again.channelsOfFormerUsers(of: nil, in: .all, limit: 10).isEmpty)
        let inbox = second.runtime.inbox
        await inbox.flush()
        let waiting = try #require(
            try await again.waiting(device: device.serial, after: 0, limit: 9, bytes: 9999, at: clock.now))
        #expect(waiting.map(\.kind) == [.channelError(code: ChannelErrorCode.userChanged)])
        try await stores.close(again)
    }

    @Test func `the last connection of a registered device is written once a day`() async throws {
        let store = try await stores.openKept()
        let domain = try await domain(over: store)
        let app = try #require(AppID("com.example.app"))
        _ = try await domain.apps.create(app)
        let id = try await domain.devices.register(app: app, reporting: nil).device.id
        func seen(after seconds: Int64) async throws -> Int64 {
            clock.advance(seconds: seconds)
            let device = try #require(try await store.device(id))
            domain.devices.sawRegistered(device)
            try await domain.devices.writeSeen()
            return clock.now.seconds - (try #require(try await store.device(id)).seenAt.seconds)
        }
        #expect(try await seen(after: 86_399) == 86_399)
        #expect(try await seen(after: 1) == 0)
        #expect(try await seen(after: 40_000) == 40_000)
        try await stores.close(store)
    }
}
