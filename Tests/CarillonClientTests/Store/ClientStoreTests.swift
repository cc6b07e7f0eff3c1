import CarillonWire
import Foundation
import GRDB
import Synchronization
import Testing

@testable import CarillonClient

@Suite(.timeLimit(.minutes(1)))
struct ClientStoreTests {
    let directory = TemporaryDirectory()

    static let identity = DeviceIdentity(device: "d", credential: "c", socket: "ws://host/")
    static let id = ChannelID(Bytes16(high: 1, low: 2))

    func open() throws -> (ClientStore, StoredState) {
        let store = try ClientStore(directory: directory.path)
        return (store, try store.load(server: "http://host", app: "com.example.app"))
    }

    func commit(_ changes: [StoreChange], to store: ClientStore) async throws {
        try await inStep(of: store) { database throws(PushError) in try store.commit(changes, in: database) }
    }

    func inStep<Value: Sendable>(
        of store: ClientStore, _ step: @escaping @Sendable (Database) throws(PushError) -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Value, any Error>) in
            store.schedule { database in
                do {
                    continuation.resume(returning: try step(database))
                } catch {
                    continuation.resume(throwing: error)
                }
            }
        }
    }

    func file(_ suffix: String = "") -> String { directory.path + "/" + ClientStore.fileName + suffix }

    func open(expecting code: PushError.Code) {
        let error = #expect(throws: PushError.self) { _ = try open() }
        #expect(error?.code == code)
    }

    @Test func `what was committed is there after a restart`() async throws {
        let channel = ChannelMachine(
            state: .open, channelID: Self.id, endpoint: ChannelEndpoint("https://h/push/token"), lastErrorCode: nil,
            keys: SubscriptionKeys(), isTokenDue: true)
        let failed = ChannelMachine(state: .error, channelID: Self.id, endpoint: nil, lastErrorCode: 202)
        do {
            let (store, state) = try open()
            #expect(state.identity == nil)
            #expect(!state.identityWasLost)
            try await commit(
                [
                    .saveIdentity(Self.identity), .saveChannel(identifier: "a", channel),
                    .saveChannel(identifier: "b", failed), .saveWithdrawal(Self.id),
                ], to: store)
        }
        let (_, state) = try open()
        #expect(state.identity == Self.identity)
        #expect(state.channels == ["a": channel, "b": failed])
        #expect(state.withdrawals == [Self.id])
    }

    @Test func `a storage of version 1 is taken over with its channels`() async throws {
        do {
            let (store, _) = try open()
            let channel = ChannelMachine(
                state: .open, channelID: Self.id, endpoint: ChannelEndpoint("https://h/push/token"), lastErrorCode: nil)
            try await commit([.saveIdentity(Self.identity), .saveChannel(identifier: "a", channel)], to: store)
        }
        let queue = try DatabaseQueue(path: file())
        try await queue.writeWithoutTransaction { database in
            for column in ["private_key", "auth_secret", "token_due"] {
                try database.execute(sql: "ALTER TABLE channel DROP COLUMN \(column)")
            }
            try database.execute(sql: "PRAGMA user_version = 1")
        }
        try queue.close()
        let (_, state) = try open()
        #expect(state.identity == Self.identity)
        #expect(state.channels["a"]?.endpoint?.token == "token")
        #expect(state.channels["a"]?.keys == nil)
    }

    @Test func `an erased identity takes its handled ids with it, and is remembered as lost`() async throws {
        do {
            let (store, _) = try open()
            try await commit(
                [.saveIdentity(Self.identity), .saveHandled(HandledMessage(id: "m", code: 100))], to: store)
            try await commit([.eraseIdentity], to: store)
        }
        let (store, state) = try open()
        #expect(state.identity == nil)
        #expect(state.identityWasLost)
        #expect(
            try await inStep(of: store) { database throws(PushError) in
                try ClientStore.handledCode(of: "m", in: database)
            } == nil)
    }

    @Test func `the newest handled ids are remembered, and no more`() async throws {
        let (store, _) = try open()
        let messages = (0..<(ClientStore.handledLimit + 5)).map {
            StoreChange.saveHandled(HandledMessage(id: "\($0)", code: $0 % 2 == 0 ? 100 : 301))
        }
        try await commit(messages, to: store)
        let codes = try await inStep(of: store) { database throws(PushError) in
            [
                try ClientStore.handledCode(of: "4", in: database), try ClientStore.handledCode(of: "5", in: database),
                try ClientStore.handledCode(of: "\(ClientStore.handledLimit + 4)", in: database),
            ]
        }
        #expect(codes == [nil, 301, 100])
    }

    @Test func `a step is written whole or not at all`() async throws {
        let (store, _) = try open()
        try await inStep(of: store) { database throws(PushError) in
            do {
                try database.execute(
                    sql: "CREATE TRIGGER full BEFORE INSERT ON handled BEGIN SELECT raise(ABORT, 'full'); END")
            } catch {
                throw PushError(.storageUnavailable, "\(error)")
            }
        }
        await #expect(throws: PushError.self) {
            try await commit(
                [.saveIdentity(Self.identity), .saveHandled(HandledMessage(id: "m", code: 100))], to: store)
        }
        #expect(try store.load(server: "http://host", app: "com.example.app").identity == nil)
    }

    @Test func `only the owner can read the files`() async throws {
        let (store, _) = try open()
        try await commit([.saveIdentity(Self.identity)], to: store)
        let names = try FileManager.default.contentsOfDirectory(atPath: directory.path)
        #expect(names.contains(ClientStore.fileName))
        for name in names {
            let attributes = try FileManager.default.attributesOfItem(atPath: directory.path + "/" + name)
            #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o600, "\(name)")
        }
    }

    @Test func `a second client is refused while the first has the store open`() throws {
        let (store, _) = try open()
        open(expecting: .storageInUse)
        withExtendedLifetime(store) {}
    }

    @Test func `the store of another app or server is refused`() throws {
        do { _ = try open() }
        for (server, app) in [("http://other", "com.example.app"), ("http://host", "com.example.other")] {
            let store = try ClientStore(directory: directory.path)
            let error = #expect(throws: PushError.self) { _ = try store.load(server: server, app: app) }
            #expect(error?.code == .storageMismatch)
        }
    }

    @Test(arguments: [
        "not a database, but long enough to look like a file with a header",
        "SQLite format 3\0 and then nothing sensible",
    ])
    func `a damaged file is refused and left as it is`(_ text: String) throws {
        let content = Data(String(repeating: text, count: 100).utf8)
        try content.write(to: URL(fileURLWithPath: file()))
        open(expecting: .storageDamaged)
        #expect(try Data(contentsOf: URL(fileURLWithPath: file())) == content)
    }

    @Test func `the file of another program is refused`() throws {
        try DatabaseQueue(path: file()).write { try $0.execute(sql: "CREATE TABLE theirs (a)") }
        open(expecting: .storageDamaged)
    }

    @Test func `a newer store is refused and left as it is`() throws {
        do { _ = try open() }
        try DatabaseQueue(path: file()).write { try $0.execute(sql: "PRAGMA user_version = 99") }
        open(expecting: .storageTooNew)
        #expect(try DatabaseQueue(path: file()).read { try Int.fetchOne($0, sql: "PRAGMA user_version") } == 99)
    }

    @Test func `a directory that cannot be made is said so`() throws {
        try Data().write(to: URL(fileURLWithPath: directory.path + "/file"))
        let error = #expect(throws: PushError.self) { _ = try ClientStore(directory: directory.path + "/file/inside") }
        #expect(error?.code == .storageUnavailable)
    }
}
