import CarillonMessages
import CarillonWire
import Foundation
import GRDB
import Synchronization
import TestSupport
import Testing

@testable import CarillonClient

@Suite(.timeLimit(.minutes(5)))
struct ClientStoreTests {
    let directory = TemporaryDirectory()

    static let identity = DeviceIdentity(device: "d", credential: "c", socket: "ws://host/")
    static let id = ChannelID(Bytes16(high: 1, low: 2))

    /// A store of before may be closed a while after its last step, by the thread that ran it.
    static let patience = 60.0

    func open(patience: Double = patience) throws -> (ClientStore, StoredState) {
        let store = try ClientStore(directory: directory.path, patience: patience)
        return (store, try store.load(server: "http://host", app: "com.example.app"))
    }

    func commit(_ changes: [StoreChange], to store: ClientStore) async throws {
        try await store.inStep { database in
            try store.transaction(reachingDisk: true, in: database) {
                for change in changes { try change.apply(to: database) }
            }
        }
    }

    func file(_ suffix: String = "") -> String { directory.path + "/" + ClientStore.fileName + suffix }

    /// A connection of another program.
    func connect() throws -> DatabaseQueue {
        var configuration = GRDB.Configuration()
        configuration.busyMode = .timeout(Self.patience)
        return try DatabaseQueue(path: file(), configuration: configuration)
    }

    func open(expecting code: PushError.Code, patience: Double = patience) {
        let error = #expect(throws: PushError.self) { _ = try open(patience: patience) }
        #expect(error?.code == code)
    }

    @Test func `committed data exists after a restart`() async throws {
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
        let queue = try connect()
        try await queue.writeWithoutTransaction { database in
            try Self.undoVersions5To8(database)
            try Self.undoVersion3(database)
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

    @Test func `a storage of version 13 is taken over with its deregistrations`() async throws {
        let deregistration = Deregistration(device: "d", credential: "c", nextCredential: "n", server: "s")
        do {
            let (store, _) = try open()
            try await commit([.saveDeregistration(deregistration)], to: store)
        }
        let queue = try connect()
        try await queue.writeWithoutTransaction { try ClientSchemaUndo.version14($0) }
        try queue.close()
        let (_, state) = try open()
        #expect(state.deregistrations == [deregistration])
    }

    private static func undoVersion8(_ database: Database) throws {
        try ClientSchemaUndo.version12(database)
        try ClientSchemaUndo.version11(database)
        try ClientSchemaUndo.version10(database)
        for name in ["event", "identity", "key", "peer", "call", "upload", "seen"] {
            try database.execute(sql: "DROP TABLE service_\(name)")
        }
        try database.execute(sql: "PRAGMA user_version = 7")
    }

    @Test func `a storage of version 7 is taken over, and keeps requests of services then`() async throws {
        do { _ = try open() }
        let queue = try connect()
        try await queue.writeWithoutTransaction { try Self.undoVersion8($0) }
        try queue.close()
        let (store, _) = try open()
        let body = Array(#"{"event":"received","id":"00000000000000000000000000000001"}"#.utf8)
        try await commit([.saveServiceEvent(body)], to: store)
        #expect(try await ServiceBox(store: store).events(after: 0, at: 1, limit: 10).events.count == 1)
    }

    private static func undoVersions5To8(_ database: Database) throws {
        try undoVersion8(database)
        for table in ["update_inbox", "update_done", "update_result", "update_place", "maintenance"] {
            try database.execute(sql: "DROP TABLE \(table)")
        }
        try database.execute(
            sql: """
                DROP TABLE push_user; ALTER TABLE channel DROP COLUMN wake; ALTER TABLE owner DROP COLUMN renewal;
                ALTER TABLE owner DROP COLUMN user; ALTER TABLE farewell DROP COLUMN next_credential;
                PRAGMA user_version = 4;
                """)
    }

    @Test func `data without its marker is restored, and the secret of a renewal is kept until it ends`()
        async throws
    {
        do {
            let (store, state) = try open()
            #expect(!state.isRestored, "it has no identity yet")
            try await commit([.saveIdentity(Self.identity), .saveRenewal("s")], to: store)
        }
        do {
            let (store, state) = try open()
            #expect(state.isRestored && state.renewal == "s")
            try store.marker.put(for: "another")
        }
        do {
            let (store, state) = try open()
            #expect(state.isRestored)
            try store.marker.put(for: Self.identity.device)
            try await commit([.saveIdentity(Self.identity), .saveAcceptedUser("ada")], to: store)
        }
        do {
            let (store, state) = try open()
            #expect(!state.isRestored && state.renewal == "s" && state.acceptedUser == "ada")
            let deregistration = Deregistration(device: "d", credential: "c", nextCredential: "n", server: "s")
            try await commit([.saveRenewal(nil), .saveAcceptedUser(nil), .saveDeregistration(deregistration)], to: store)
        }
        let (_, state) = try open()
        #expect(state.renewal == nil && state.acceptedUser == nil && state.deregistrations.map(\.nextCredential) == ["n"])
    }

    @Test func `a storage of version 4 is converted, and the pending report of the user is kept`() async throws {
        do { _ = try open() }
        let queue = try connect()
        try await queue.writeWithoutTransaction { try Self.undoVersions5To8($0) }
        try queue.close()
        let channel = ChannelMachine(
            state: .open, channelID: Self.id, endpoint: ChannelEndpoint("https://h/push/token"), lastErrorCode: nil,
            wake: .alert)
        for userChange in [nil, UserChange.signedIn("t"), .signedOut, nil] {
            do {
                let (store, _) = try open()
                try await commit([.saveUser(userChange), .saveChannel(identifier: "a", channel)], to: store)
            }
            let (_, state) = try open()
            #expect(state.user == userChange)
            #expect(state.channels["a"]?.wake == .alert)
        }
    }

    private static func undoVersion3(_ database: Database) throws {
        for table in ["message", "report", "farewell", "push_device"] {
            try database.execute(sql: "DROP TABLE \(table)")
        }
        for column in ["server_id", "registration"] {
            try database.execute(sql: "ALTER TABLE owner DROP COLUMN \(column)")
        }
        try database.execute(sql: "PRAGMA user_version = 2")
    }

    @Test func `a storage of version 6 is taken over, and its updates are processed`() async throws {
        let owner = UpdateOwner(device: "d", user: "ada", profile: "")
        let frame = ProcessingFixture.frame("a", "content", #"{"action":"roots"}"#)
        do {
            let inbox = UpdateInbox(store: try open().0)
            try await inbox.setOwner(owner)
            _ = try await inbox.received(
                PollAnswer(updates: [frame], position: "p"), to: nil, by: owner, reported: [], parameters: nil)
        }
        let queue = try connect()
        try await queue.writeWithoutTransaction { database in
            try Self.undoVersion8(database)
            try database.execute(
                sql: """
                    DROP INDEX update_inbox_absorbed; ALTER TABLE update_inbox DROP COLUMN absorbed_by; PRAGMA user_version = 6;
                    """)
        }
        try queue.close()
        let inbox = UpdateInbox(store: try open().0)
        try await inbox.setOwner(owner)
        let later = ProcessingFixture.frame("b", "content", #"{"action":"roots"}"#)
        _ = try await inbox.received(
            PollAnswer(updates: [later], position: "q"), to: "p", by: owner, reported: [], parameters: nil)
        #expect(try await inbox.next()?.key.update == "b", "it stands for the first")
    }

    @Test func `a storage of version 3 is converted, and the app's report of its token is kept`() async throws {
        do { _ = try open() }
        let queue = try connect()
        try await queue.writeWithoutTransaction { database in
            try Self.undoVersions5To8(database)
            try database.execute(sql: "DROP TABLE push_device; PRAGMA user_version = 3")
        }
        try queue.close()
        var device = PushDeviceMachine(
            token: "aa", acceptedToken: "bb",
            details: PushDeviceDetails(
                environment: .sandbox, appVersion: "1", locale: "de", timeZone: "Europe/Vienna",
                parameters: [
                    "a": .text("x"), "b": .integer(7), "c": .number(1.5), "d": .flag(true), "e": .texts(["x", "y"]),
                ]),
            status: .suspended(.tokenDead), statusAt: 7)
        do {
            let (store, state) = try open()
            #expect(state.device == PushDeviceMachine())
            try await commit([.saveDevice(device)], to: store)
        }
        do {
            let (store, state) = try open()
            #expect(state.device == device)
            _ = device.deviceLost()
            try await commit([.saveDevice(device)], to: store)
        }
        #expect(try open().1.device == device)
    }

    @Test func `a storage of version 2 is converted, and then stores messages`() async throws {
        do {
            let (store, _) = try open()
            try await commit([.saveIdentity(Self.identity), .saveAnswer(MessageAnswer(id: "m", code: 100))], to: store)
        }
        let queue = try connect()
        try await queue.writeWithoutTransaction { database in
            try Self.undoVersions5To8(database)
            try Self.undoVersion3(database)
        }
        try queue.close()
        let (store, state) = try open()
        #expect(state.identity == Self.identity)
        #expect(state.serverID == nil)
        try await commit(
            [.saveMessage(Self.message(1, "m"), of: "a"), .saveServer(address: "http://host", id: "s")], to: store)
        #expect(try await stored(in: store, of: "a").map(\.id) == ["m"])
    }

    // MARK: Messages

    static func message(_ position: Int64, _ id: String, _ body: [UInt8] = []) -> BufferedMessage {
        BufferedMessage(position: position, id: id, body: body, coding: body.isEmpty ? nil : ContentCoding(.identity))
    }

    func stored(in store: ClientStore, of channel: String, after: Int64 = 0) async throws -> [BufferedMessage] {
        try await store.inStep { database in
            try ClientStore.messages(of: channel, after: after, in: database)
        }
    }

    @Test func `messages exist after a restart, in order, with all their members`() async throws {
        let coding = ContentCoding(.aesgcm, encryption: "salt=x", cryptoKey: "dh=y")
        let messages = [
            Self.message(3, "c", [1, 2]), Self.message(5, "a"),
            BufferedMessage(position: 7, id: "b", body: [0, 255], coding: coding),
        ]
        do {
            let (store, _) = try open()
            try await commit(
                messages.reversed().map { .saveMessage($0, of: "x") } + [.saveMessage(Self.message(4, "o", [9]), of: "y")],
                to: store)
        }
        let (store, state) = try open()
        #expect(
            state.buffers == [
                "x": BufferUse(messages: 3, bytes: 4, lastPosition: 7),
                "y": BufferUse(messages: 1, bytes: 1, lastPosition: 4),
            ])
        #expect(try await stored(in: store, of: "x") == messages)
        #expect(try await stored(in: store, of: "x", after: 3) == Array(messages.dropFirst()))
        try await commit([.removeMessage(position: 5), .removeChannel(identifier: "y")], to: store)
        #expect(try await stored(in: store, of: "x") == [messages[0], messages[2]])
        #expect(try await stored(in: store, of: "y").isEmpty)
    }

    @Test func `a page contains no more than fits, and is followed by the next`() async throws {
        let (store, _) = try open()
        try await commit(
            (1...Int64(ChannelReadQueue.pageLimit + 1)).map { .saveMessage(Self.message($0, "\($0)"), of: "x") }, to: store)
        let page = try await stored(in: store, of: "x")
        #expect(page.count == ChannelReadQueue.pageLimit)
        #expect(try await stored(in: store, of: "x", after: page[page.count - 1].position).count == 1)
    }

    @Test func `the newer answer to a message counts`() async throws {
        let (store, _) = try open()
        try await commit(
            [.saveAnswer(MessageAnswer(id: "m", code: 100)), .saveAnswer(MessageAnswer(id: "m", code: 301))], to: store)
        #expect(
            try await store.inStep { database in
                try ClientStore.answer(to: "m", in: database)
            } == 301)
    }

    @Test func `reports, deregistrations and the secret of a registration outlive the process`() async throws {
        let reports = [MessageAnswer(id: "b", code: 301), MessageAnswer(id: "a", code: 303)]
        let deregistration = Deregistration(device: "d", credential: "c", registration: "secret-1", server: "http://host")
        do {
            let (store, _) = try open()
            try await commit(
                reports.map { .saveReport($0) } + [.saveDeregistration(deregistration), .saveRegistration("secret")],
                to: store)
        }
        do {
            let (store, state) = try open()
            #expect(state.reports == reports)
            #expect(state.deregistrations == [deregistration])
            #expect(state.registration == "secret")
            try await commit(
                [.removeReports, .removeDeregistration(device: "d"), .saveIdentity(Self.identity)], to: store)
        }
        do {
            let (store, state) = try open()
            #expect(state.registration == "secret", "the server did not accept the credential yet")
            try await commit([.saveRegistration(nil)], to: store)
        }
        let (_, state) = try open()
        #expect(state.reports.isEmpty)
        #expect(state.deregistrations.isEmpty)
        #expect(state.registration == nil)
    }

    // MARK: Servers

    @Test func `a device moves to another address if its server can be recognized there`() async throws {
        do {
            let (store, _) = try open()
            try await commit([.saveIdentity(Self.identity), .saveServer(address: "http://host", id: "s1")], to: store)
        }
        do {
            let store = try ClientStore(directory: directory.path, patience: Self.patience)
            let state = try store.load(server: "https://new", app: "com.example.app")
            #expect(state.formerServer == "http://host")
            #expect(state.serverID == "s1")
            #expect(state.identity == Self.identity)
            try await commit([.saveServer(address: "https://new", id: "s1")], to: store)
        }
        let store = try ClientStore(directory: directory.path, patience: Self.patience)
        #expect(try store.load(server: "https://new", app: "com.example.app").formerServer == nil)
    }

    @Test func `without a device any server will do`() async throws {
        do {
            let (store, _) = try open()
            try await commit([.saveRegistration("of the former server")], to: store)
        }
        for _ in 0..<2 {
            let store = try ClientStore(directory: directory.path, patience: Self.patience)
            let state = try store.load(server: "https://new", app: "com.example.app")
            #expect(state.formerServer == nil)
            #expect(state.registration == nil)
        }
    }

    @Test func `an erased identity removes the answers of its messages, and is remembered as lost`() async throws {
        do {
            let (store, _) = try open()
            try await commit(
                [.saveIdentity(Self.identity), .saveAnswer(MessageAnswer(id: "m", code: 100))], to: store)
            try await commit([.eraseIdentity], to: store)
        }
        let (store, state) = try open()
        #expect(state.identity == nil)
        #expect(state.identityWasLost)
        #expect(
            try await store.inStep { database in
                try ClientStore.answer(to: "m", in: database)
            } == nil)
    }

    @Test func `the newest answers are remembered, and no more`() async throws {
        let (store, _) = try open()
        let messages = (0..<(ClientStore.handledLimit + 5)).map {
            StoreChange.saveAnswer(MessageAnswer(id: "\($0)", code: $0 % 2 == 0 ? 100 : 301))
        }
        try await commit(messages, to: store)
        let codes = try await store.inStep { database in
            [
                try ClientStore.answer(to: "4", in: database), try ClientStore.answer(to: "5", in: database),
                try ClientStore.answer(to: "\(ClientStore.handledLimit + 4)", in: database),
            ]
        }
        #expect(codes == [nil, 301, 100])
    }

    @Test func `a step is written whole or not at all`() async throws {
        let (store, _) = try open()
        try await store.inStep { database in
            do {
                try database.execute(
                    sql: "CREATE TRIGGER full BEFORE INSERT ON handled BEGIN SELECT raise(ABORT, 'full'); END")
            } catch {
                throw PushError(.storageUnavailable, "\(error)")
            }
        }
        await #expect(throws: PushError.self) {
            try await commit(
                [.saveIdentity(Self.identity), .saveAnswer(MessageAnswer(id: "m", code: 100))], to: store)
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
        open(expecting: .storageInUse, patience: 0)
        withExtendedLifetime(store) {}
    }

    @Test func `the store of another app, or of another server that cannot be recognized, is refused`() async throws {
        do {
            let (store, _) = try open()
            try await commit([.saveIdentity(Self.identity)], to: store)
        }
        for (server, app) in [("http://other", "com.example.app"), ("http://host", "com.example.other")] {
            let store = try ClientStore(directory: directory.path, patience: Self.patience)
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

    @Test func `a file that was emptied is damage, and no new device`() throws {
        do { _ = try open() }
        try Data().write(to: URL(fileURLWithPath: file()))
        let error = #expect(throws: PushError.self) { _ = try open() }
        #expect(error?.code == .storageDamaged)
        #expect(error?.message.contains("emptied") == true)
        #expect(try Data(contentsOf: URL(fileURLWithPath: file())).isEmpty)
    }

    @Test func `a database without tables is damage`() throws {
        let queue = try connect()
        try queue.writeWithoutTransaction { try $0.execute(sql: "CREATE TABLE t (a); DROP TABLE t") }
        try queue.close()
        open(expecting: .storageDamaged)
    }

    @Test func `a file that is missing beside its last write is damage`() throws {
        try Data([1]).write(to: URL(fileURLWithPath: file("-wal")))
        open(expecting: .storageDamaged)
        #expect(!FileManager.default.fileExists(atPath: file()))
    }

    @Test func `the file of another program is refused`() throws {
        try connect().write { try $0.execute(sql: "CREATE TABLE theirs (a)") }
        open(expecting: .storageDamaged)
    }

    @Test func `a newer store is refused and left as it is`() throws {
        do { _ = try open() }
        try connect().write { try $0.execute(sql: "PRAGMA user_version = 99") }
        open(expecting: .storageTooNew)
        #expect(try connect().read { try Int.fetchOne($0, sql: "PRAGMA user_version") } == 99)
    }

    @Test func `a directory that cannot be created is reported`() throws {
        try Data().write(to: URL(fileURLWithPath: directory.path + "/file"))
        let error = #expect(throws: PushError.self) { _ = try ClientStore(directory: directory.path + "/file/inside") }
        #expect(error?.code == .storageUnavailable)
    }
}
