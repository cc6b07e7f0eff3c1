import CarillonCore
import CarillonWire
import Synchronization

@testable import CarillonServer

/// A store of inboxes whose first read of an arriving device is answered later.
final class PausedInboxStore: InboxStore {
    private let store: any InboxStore
    private let beginning = AsyncStream<Void>.makeStream()
    private let ending = AsyncStream<Void>.makeStream()
    private let isFirst = Mutex(true)

    init(_ store: any InboxStore) { self.store = store }

    /// Returns a home that reads this store, with the sessions of the domain's home.
    func home(of domain: HomeDomain) -> HomeRuntime {
        let sessions = domain.runtime.sessions
        let writer = InboxWriter(
            store: self, sessions: sessions, scheduler: Scheduler { _, _ in }, logger: domain.logger)
        let inbox = Inbox(
            store: self, writer: writer, sessions: sessions,
            positions: PositionSource(epoch: domain.runtime.inbox.epoch),
            time: domain.time, random: .system)
        return HomeRuntime(inbox: inbox, sessions: sessions, store: domain.runtime.store)
    }

    /// Returns when the first arriving device was read.
    func hasRead() async { for await _ in beginning.stream { return } }

    /// Lets the first read be answered.
    func goOn() { ending.continuation.finish() }

    func arrival(of name: DeviceName, _ load: PageRequest, at now: Timestamp) async throws -> Arrival? {
        let waits = isFirst.withLock { isFirst in
            defer { isFirst = false }
            return isFirst
        }
        guard waits else { return try await store.arrival(of: name, load, at: now) }
        defer { beginning.continuation.finish() }
        let arrival = try await store.arrival(of: name, load, at: now)
        beginning.continuation.yield()
        for await _ in ending.stream {}
        return arrival
    }

    func commit(_ operations: [InboxOperation]) async throws -> [InboxResult] { try await store.commit(operations) }

    func waiting(
        device: DeviceSerial, after position: Int64, limit: Int, bytes: Int, at now: Timestamp
    ) async throws -> [Envelope]? {
        try await store.waiting(device: device, after: position, limit: limit, bytes: bytes, at: now)
    }

    func waitingCount(device: DeviceSerial, at now: Timestamp) async throws -> Int {
        try await store.waitingCount(device: device, at: now)
    }

    func waitingInAll() async throws -> InboxUsage.Waiting { try await store.waitingInAll() }

    func record(of id: MessageID, at now: Timestamp) async throws -> MessageRecord? {
        try await store.record(of: id, at: now)
    }

    func sweep(at now: Timestamp, forgetting retention: RetentionTime?, limit: Int) async throws -> Swept {
        try await store.sweep(at: now, forgetting: retention, limit: limit)
    }
}
