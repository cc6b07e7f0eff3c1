import CarillonWire
import Synchronization
import TestStores
import TestSupport
import Testing

@testable import CarillonCore

/// Changes of an app while its log is being read.
@Suite(.timeLimit(.minutes(5)))
struct UpdateLogReadingTests {
    private let app = AppSerial(1)
    private static let start = Timestamp(milliseconds: 1)
    private static let document = Array(#"{"parameters":{"region":"string"}}"#.utf8)
    private var key: AppDocument.Key { AppDocument.Key(.parameterRules, of: app) }

    private func logs(_ store: any Store, _ documents: PausedDocuments) -> UpdateLogs {
        UpdateLogs(
            store: store, documents: AppDocuments(store: documents), language: AudienceLanguage { _, _ in nil })
    }

    @Test func `rules that are set during a reading cause one more reading for all waiters`() async throws {
        let store = try await stores.open()
        let (id, otherID) = (try #require(AppID("com.example.app")), try #require(AppID("com.example.other")))
        _ = try await store.createApp(id, at: Self.start)
        let documents = PausedDocuments(store, pausesSecondDocument: true) {
            // The reading therefore reads the document, too.
            _ = try await store.createApp(otherID, at: Self.start)
        }
        let logs = logs(store, documents)
        async let first = logs.log(of: app)
        try await eventually { documents.isPaused }
        let version = try #require(try await store.putDocument(Self.document, as: key, at: Self.start))
        try await withThrowingTaskGroup(of: UpdateLogs.Log.self) { group in
            for _ in 0..<50 { group.addTask { [app] in try await logs.log(of: app) } }
            try await eventually { documents.calls >= 52 }
            documents.goOn()
            for try await log in group { #expect(log.rulesVersion == version.rawValue) }
        }
        let before = try await first
        #expect(before.rulesVersion == 0, "its reading began before the change")
        #expect(logs.reads == 2)
    }

    @Test func `a request ends if its app is deleted while the log is read`() async throws {
        let store = try await stores.open()
        let id = try #require(AppID("com.example.app"))
        _ = try await store.createApp(id, at: Self.start)
        _ = try await store.putDocument(Self.document, as: key, at: Self.start)
        let documents = PausedDocuments(store, pausesSecondDocument: false) {
            _ = try await store.deleteApp(id, at: Self.start)
        }
        let logs = logs(store, documents)
        let log = try await logs.log(of: app)
        #expect(log.rules == ParameterRules() && log.rulesVersion == 0)
        #expect(logs.reads == 1)
    }

    private func publish(_ number: UInt64, in store: any Store) async throws -> Update {
        let definition = Update.Definition(
            kind: .content, payload: Array(#"{"action":"refresh","object":"a"}"#.utf8), audience: nil, mode: .once,
            ttlSeconds: 60, orderKey: nil, supersedes: nil)
        let request = UpdateRequest(
            proposed: UpdateID(Bytes16(high: 1, low: number)), app: app, key: KeyID(1), definition: definition, body: [7],
            isIndexed: true, idempotency: nil, limits: .init())
        guard case .made(let update, _, _) = try await store.publishUpdate(request, at: Self.start) else {
            throw StoreFault(.unavailable, "not published")
        }
        return update
    }

    @Test func `a log that another home changed is read again, and is not read without a change`() async throws {
        let store = try await stores.open()
        _ = try await store.createApp(try #require(AppID("com.example.app")), at: Self.start)
        let (documents, language) = (AppDocuments(store: store), AudienceLanguage { _, _ in nil })
        let logs = UpdateLogs(store: store, documents: documents, language: language, isShared: true)
        let alone = UpdateLogs(store: store, documents: documents, language: language)
        for known in [logs, alone] { #expect(try await known.log(of: app).live.count == 0) }
        let (first, second) = (try await publish(1, in: store), try await publish(2, in: store))
        #expect(try await logs.log(of: app).live.serialsInOrder == [first.serial, second.serial])
        #expect(try await logs.log(of: app).live.count == 2)
        #expect(logs.reads == 2)
        #expect(try await store.withdrawUpdate(first, by: KeyID(1), at: Self.start))
        #expect(try await logs.log(of: app).live.serialsInOrder == [second.serial])
        _ = try await store.endExpiredUpdates(at: Self.start.adding(seconds: 60), limit: 9)
        let log = try await logs.log(of: app)
        #expect(log.live.count == 0 && log.expiredContent == second.serial)
        #expect(logs.reads == 4)
        #expect(try await alone.log(of: app).live.count == 0)
        #expect(alone.reads == 1, "no other home changes it")
    }

    @Test func `a change by another home causes one more reading for all callers`() async throws {
        let store = try await stores.open()
        _ = try await store.createApp(try #require(AppID("com.example.app")), at: Self.start)
        let logs = UpdateLogs(
            store: store, documents: AppDocuments(store: store), language: AudienceLanguage { _, _ in nil }, isShared: true)
        for number in 1...10 as ClosedRange<UInt64> {
            let update = try await publish(number, in: store)
            try await withThrowingTaskGroup(of: UpdateLogs.Log.self) { group in
                for _ in 0..<50 { group.addTask { [app] in try await logs.log(of: app) } }
                for try await log in group { #expect(log.live.last == update.serial) }
            }
            #expect(logs.reads == Int(number))
        }
    }
}

/// Documents of a store that change between two readings.
private final class PausedDocuments: AppDocumentStore {
    private struct State {
        var calls = 0
        var documents = 0
        var isPaused = false
        var mayGoOn = false
    }

    private let store: any Store
    private let pausesSecondDocument: Bool
    private let beforeSecondVersion: @Sendable () async throws -> Void
    private let state = Mutex(State())

    /// - Parameter beforeSecondVersion: Runs before the second reading of the version.
    init(
        _ store: any Store, pausesSecondDocument: Bool, beforeSecondVersion: @escaping @Sendable () async throws -> Void
    ) {
        self.store = store
        self.pausesSecondDocument = pausesSecondDocument
        self.beforeSecondVersion = beforeSecondVersion
    }

    /// The number of readings of the version.
    var calls: Int { state.withLock { $0.calls } }
    /// Whether the second document was read, and is not returned yet.
    var isPaused: Bool { state.withLock { $0.isPaused } }

    func goOn() { state.withLock { $0.mayGoOn = true } }

    func registryVersion() async throws -> RegistryVersion {
        let call = state.withLock { state -> Int in
            state.calls += 1
            return state.calls
        }
        // A caller that reads again and again fails.
        guard call <= 1000 else { throw StoreFault(.unavailable, "the version is read too often") }
        if call == 2 { try await beforeSecondVersion() }
        return try await store.registryVersion()
    }

    func document(_ key: AppDocument.Key) async throws -> AppDocument? {
        let number = state.withLock { state -> Int in
            state.documents += 1
            return state.documents
        }
        let document = try await store.document(key)
        if pausesSecondDocument, number == 2 {
            state.withLock { $0.isPaused = true }
            try await eventually { self.state.withLock { $0.mayGoOn } }
        }
        return document
    }

    func apps(with kind: AppDocument.Kind) async throws -> [App] { try await store.apps(with: kind) }

    func putDocument(_ bytes: [UInt8], as key: AppDocument.Key, at now: Timestamp) async throws -> RegistryVersion? {
        try await store.putDocument(bytes, as: key, at: now)
    }

    func removeDocument(_ key: AppDocument.Key) async throws -> Bool { try await store.removeDocument(key) }
}
