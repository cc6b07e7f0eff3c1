import CarillonCore
import CarillonSQLite
import CarillonWire
import Foundation
import Logging
import StoreConformance
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct SecretsTests {
    @Test func `no secret of a registration is in the store`() async throws {
        let directory = try TemporaryDirectory.make()
        let store = try SQLiteStore(directory: directory)
        let app = try StoreFixture.appID
        _ = try await store.createApp(app, at: StoreFixture.start)
        let secret = String(repeating: "s3cr3t-", count: 6)
        let (sessions, time) = (LiveSessions(), TimeSource { StoreFixture.start })
        let random = RandomSource { .random(in: .min ... .max) }
        let writer = InboxWriter(
            store: store, sessions: sessions, scheduler: Scheduler { _, _ in }, logger: Logger(label: "test"))
        let inbox = Inbox(
            store: store, writer: writer, sessions: sessions, positions: PositionSource(epoch: 1), time: time, random: random
        )
        let directoryOfChannels = ChannelDirectory(store: store)
        let home = HomeRuntime(inbox: inbox, sessions: sessions, store: store)
        let rateLimits = RateLimits(settings: .init(), ticks: TickSource { 0 })
        let conditions = ItemConditions { _, _ in nil }
        let firings = Firings(
            store: store, home: home, others: .none, conditions: conditions, styles: .none, payloadSize: { _ in 0 },
            time: time)
        let documents = AppDocuments(store: store)
        let engine = ItemEngine(
            store: store, home: home, documents: documents, firings: firings, conditions: conditions, time: time,
            ticks: TickSource { 0 }, logger: Logger(label: "test"))
        let subscriptions = SubscriptionRegistrar(
            store: store, engine: engine,
            items: AppItems(store: store, documents: documents, engine: engine, rateLimits: rateLimits, time: time),
            home: home, others: .none,
            rateLimits: rateLimits, approvalHooks: NoApprovalHooks(), payloadSize: { _ in 0 }, time: time, random: random)
        let registrar = DeviceRegistrar(
            devices: store, home: home, directory: directoryOfChannels,
            notifier: StatusNotifier(devices: store, home: home),
            formerChannels: FormerChannels(store: store, home: home, directory: directoryOfChannels, time: time),
            subscriptions: subscriptions, rateLimits: rateLimits, approvalHooks: NoApprovalHooks(), time: time,
            random: random)
        _ = try await registrar.register(app: app, registration: secret)
        try store.close()
        #expect(try !isFound(Data(secret.utf8), in: directory))
    }

    @Test func `a key that was wrapped is not to be found in the clear any more`() async throws {
        let directory = try TemporaryDirectory.make()
        let store = try SQLiteStore(directory: directory)
        let random = RandomSource { .random(in: .min ... .max) }
        let plain = try await KeyRing.open(store, wrappedBy: nil, random)
        let wrapping = WrappingKey(bytes: Array(repeating: 5, count: 32))
        #expect(try isFound(Data(plain[0].bytes), in: directory))
        _ = try await KeyRing.open(store, wrappedBy: wrapping, random)
        #expect(try !isFound(Data(plain[0].bytes), in: directory))
        try store.close()
        #expect(try !isFound(Data(plain[0].bytes), in: directory))
    }

    private func isFound(_ secret: Data, in directory: String) throws -> Bool {
        try FileManager.default.contentsOfDirectory(atPath: directory).contains { name in
            try Data(contentsOf: URL(fileURLWithPath: directory + "/" + name)).range(of: secret) != nil
        }
    }
}
