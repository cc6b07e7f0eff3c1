import CarillonCore
import CarillonWire
import Synchronization
import Testing

struct ChannelDirectoryTests {
    private let store = HeldChannels()
    private static let serial = ChannelSerial(1)

    @Test func `a channel is read once`() async throws {
        let directory = ChannelDirectory(store: store)
        #expect(directory.remembered(Self.serial) == nil)
        for _ in 0..<3 { #expect(try await directory.channel(Self.serial) == HeldChannels.channel(Self.serial)) }
        #expect(directory.remembered(Self.serial) != nil)
        #expect(store.reads == 1)
    }

    @Test func `the end of a channel is not remembered`() async throws {
        let directory = ChannelDirectory(store: store)
        store.close(Self.serial)
        for _ in 0..<2 { #expect(try await directory.channel(Self.serial) == nil) }
        #expect(store.reads == 2)
    }

    @Test func `a forgotten entry is read again`() async throws {
        let directory = ChannelDirectory(store: store)
        let other = ChannelSerial(2)
        for serial in [Self.serial, other] { _ = try await directory.channel(serial) }
        store.close(Self.serial)
        directory.forget([Self.serial])
        #expect(try await directory.channel(Self.serial) == nil)
        #expect(directory.remembered(other) != nil)
    }

    @Test func `the channels of a shard are forgotten, also those that are being read`() async throws {
        let directory = ChannelDirectory(store: store)
        let channel = try #require(try await directory.channel(Self.serial))
        directory.forget(Shard(number: (Shard(of: channel.device).number + 1) % UInt16(Shard.count)))
        #expect(directory.remembered(Self.serial) != nil)
        directory.forget(Shard(of: channel.device))
        #expect(directory.remembered(Self.serial) == nil)
        store.beforeAnswering = { directory.forget(Shard(of: channel.device)) }
        #expect(try await directory.channel(Self.serial) != nil)
        #expect(directory.remembered(Self.serial) == nil)
    }

    @Test func `a record that was read before a change and arrives after it is not kept`() async throws {
        let directory = ChannelDirectory(store: store)
        let held = store
        held.beforeAnswering = {
            // The channel is closed while its record is on the way.
            held.close(Self.serial)
            directory.forget([Self.serial])
        }
        #expect(try await directory.channel(Self.serial) != nil)
        held.beforeAnswering = nil
        #expect(directory.remembered(Self.serial) == nil)
        #expect(try await directory.channel(Self.serial) == nil)
    }

    @Test func `a channel that was opened is remembered, unless something changed meanwhile`() async throws {
        let directory = ChannelDirectory(store: store)
        let channel = HeldChannels.channel(Self.serial)
        #expect(try await directory.opening { .opened(channel) } == .opened(channel))
        #expect(directory.remembered(Self.serial) == channel)
        directory.forget([Self.serial])
        _ = try await directory.opening {
            directory.forget([ChannelSerial(2)])
            return .opened(channel)
        }
        #expect(directory.remembered(Self.serial) == nil)
        // A device without channels changes nothing.
        _ = try await directory.opening {
            directory.forget([])
            return .opened(channel)
        }
        #expect(directory.remembered(Self.serial) == channel)
        #expect(store.reads == 0)
    }

    @Test func `the directory remembers up to twice its capacity`() async throws {
        let directory = ChannelDirectory(store: store, capacity: 8)
        for serial in Int64(1)...100 { _ = try await directory.channel(ChannelSerial(serial)) }
        let remembered = (Int64(1)...100).filter { directory.remembered(ChannelSerial($0)) != nil }
        #expect((8...16).contains(remembered.count))
        #expect(remembered.contains(100))
    }
}

/// Every serial is an open channel until it is closed.
private final class HeldChannels: ChannelStore {
    private struct State {
        var closed: Set<ChannelSerial> = []
        var reads = 0
        var beforeAnswering: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())

    var reads: Int { state.withLock { $0.reads } }

    var beforeAnswering: (@Sendable () -> Void)? {
        get { state.withLock { $0.beforeAnswering } }
        set { state.withLock { $0.beforeAnswering = newValue } }
    }

    func close(_ serial: ChannelSerial) { state.withLock { _ = $0.closed.insert(serial) } }

    static func channel(_ serial: ChannelSerial) -> PushChannel {
        PushChannel(
            serial: serial, device: Sample.device, app: AppSerial(1), id: Sample.channelID, name: nil, vapidKey: nil,
            createdAt: Sample.now)
    }

    func channel(_ serial: ChannelSerial) async throws -> PushChannel? {
        let (isOpen, beforeAnswering) = state.withLock { state in
            state.reads += 1
            return (!state.closed.contains(serial), state.beforeAnswering)
        }
        beforeAnswering?()
        return isOpen ? Self.channel(serial) : nil
    }

    struct NotAsked: Error {}

    func openChannel(
        _ id: ChannelID, device: DeviceSerial, name: String?, vapidKey: [UInt8]?, wake: WakeMode?, limit: Int,
        at now: Timestamp
    ) async throws -> OpenChannelResult { throw NotAsked() }
    func channels(device: DeviceSerial) async throws -> [PushChannel] { throw NotAsked() }
    func channel(_ id: ChannelID, device: DeviceSerial) async throws -> PushChannel? { throw NotAsked() }
    func closeChannel(_ id: ChannelID, device: DeviceSerial, at now: Timestamp) async throws -> ChannelSerial? {
        throw NotAsked()
    }
}
