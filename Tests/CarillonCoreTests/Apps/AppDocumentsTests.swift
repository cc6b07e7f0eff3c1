import CarillonWire
import Synchronization
import Testing

@testable import CarillonCore

@Suite(.timeLimit(.minutes(5)))
struct AppDocumentsTests {
    private let store = CountedDocuments()
    private let key = AppDocument.Key(.alertText, of: AppSerial(1))

    private static func text(
        _ documents: AppDocuments, of key: AppDocument.Key, onMade: () -> Void = {}
    ) async throws -> String? {
        try await documents.value(of: key) { document -> String? in
            onMade()
            return document.map { String(decoding: $0.bytes, as: UTF8.self) }
        }
    }

    private func text(_ documents: AppDocuments, of key: AppDocument.Key? = nil) async throws -> String? {
        try await Self.text(documents, of: key ?? self.key, onMade: store.noteMade)
    }

    @Test func `a document is read and its value is made once, until the registry changes`() async throws {
        let documents = AppDocuments(store: store)
        store.put("a", as: key)
        for _ in 0..<3 { #expect(try await text(documents) == "a") }
        #expect(store.reads == 1 && store.made == 1)
        store.put("b", as: key)
        for _ in 0..<3 { #expect(try await text(documents) == "b") }
        #expect(store.reads == 2 && store.made == 2)
        #expect(try await documents.remove(key))
        for _ in 0..<3 { #expect(try await text(documents) == nil) }
        #expect(store.reads == 3 && store.made == 3)
    }

    @Test func `a change of something else makes no value again`() async throws {
        let documents = AppDocuments(store: store)
        store.put("a", as: key)
        let other = AppDocument.Key(.alertText, of: AppSerial(2))
        for _ in 0..<2 {
            #expect(try await text(documents) == "a")
            #expect(try await text(documents, of: other) == nil)
        }
        #expect(store.reads == 2 && store.made == 2)
        store.changeOther()
        for _ in 0..<2 {
            #expect(try await text(documents) == "a")
            #expect(try await text(documents, of: other) == nil)
        }
        #expect(store.reads == 4 && store.made == 2)
    }

    @Test func `a written document is seen by the next use`() async throws {
        let documents = AppDocuments(store: store)
        #expect(try await text(documents) == nil)
        let version = try #require(try await documents.put(Array("a".utf8), as: key, at: Sample.now))
        #expect(try await text(documents) == "a")
        let found = try await documents.value(of: key) { $0?.version }
        #expect(found == version)
    }

    @Test func `a document that changes while it is read is read again`() async throws {
        let documents = AppDocuments(store: store)
        store.put("a", as: key)
        store.onRead { [store, key] in store.put("b", as: key) }
        #expect(try await text(documents) == "a", "the reading began before the change")
        #expect(try await text(documents) == "b")
        #expect(try await text(documents) == "b")
        #expect(store.reads == 2)
    }

    @Test func `a reading that began before another does not take its place`() async throws {
        let documents = AppDocuments(store: store)
        store.put("a", as: key)
        let reading = Mutex<Task<String?, any Error>?>(nil)
        store.onRead { [store, key] in
            store.put("b", as: key)
            // It ends by itself; then the first read continues.
            reading.withLock { reading in
                reading = Task { try await Self.text(documents, of: key) }
            }
        }
        store.afterRead { _ = await reading.withLock { $0 }?.result }
        #expect(try await text(documents) == "a")
        let later = try await reading.withLock { $0 }?.value
        #expect(later == "b")
        #expect(try await text(documents) == "b")
        #expect(store.reads == 2, "the later reading is kept")
    }

    @Test func `a value is forgotten when its document is changed, or its app is deleted`() async throws {
        let documents = AppDocuments(store: store)
        let sameApp = AppDocument.Key(.userRules, of: AppSerial(1))
        let otherApp = AppDocument.Key(.alertText, of: AppSerial(2))
        func readAll() async throws {
            for key in [key, sameApp, otherApp] {
                _ = try await text(documents, of: key)
                #expect(documents.remembers(key))
            }
        }
        try await readAll()
        _ = try await documents.put(Array("a".utf8), as: key, at: Sample.now)
        #expect(!documents.remembers(key) && documents.remembers(sameApp) && documents.remembers(otherApp))
        try await readAll()
        let isRemoved = try await documents.remove(key)
        #expect(isRemoved && !documents.remembers(key) && documents.remembers(sameApp))
        try await readAll()
        documents.forget(AppSerial(1))
        #expect(!documents.remembers(key) && !documents.remembers(sameApp) && documents.remembers(otherApp))
    }

    @Test(arguments: ["removed", "forgotten"])
    func `a reading that began before its document was removed is not remembered`(_ change: String) async throws {
        let documents = AppDocuments(store: store)
        store.put("a", as: key)
        store.afterRead { [key] in
            do {
                if change == "removed" { _ = try await documents.remove(key) } else { documents.forget(key.app) }
            } catch {
                Issue.record(error)
            }
        }
        #expect(try await text(documents) == "a")
        #expect(!documents.remembers(key))
    }

    @Test func `a document that is read directly is not remembered`() async throws {
        let documents = AppDocuments(store: store)
        let version = store.put("a", as: key)
        for _ in 0..<2 { #expect(try await documents.document(key)?.version == version) }
        #expect(store.reads == 2 && !documents.remembers(key))
    }

    @Test func `an unreadable document is not remembered`() async throws {
        struct Unreadable: Error {}
        let documents = AppDocuments(store: store)
        store.put("a", as: key)
        for _ in 0..<2 {
            await #expect(throws: Unreadable.self) {
                try await documents.value(of: key) { _ -> String? in throw Unreadable() }
            }
        }
        #expect(try await text(documents) == "a")
        #expect(store.reads == 3)
    }

    @Test func `apps are listed once, until the registry changes`() async throws {
        let documents = AppDocuments(store: store)
        let app = try #require(AppID("com.example.app1"))
        for _ in 0..<2 { #expect(try await documents.apps(with: .alertText).isEmpty) }
        #expect(store.lists == 1)
        store.put("a", as: key)
        for _ in 0..<2 { #expect(try await documents.apps(with: .alertText) == [app: AppSerial(1)]) }
        #expect(try await documents.apps(with: .realm).isEmpty)
        #expect(store.lists == 3)
        _ = try await documents.remove(key)
        #expect(try await documents.apps(with: .alertText).isEmpty)
    }

    @Test func `the number of remembered documents is limited`() async throws {
        let documents = AppDocuments(store: store, capacity: 8)
        func readAll() async throws {
            for app in Int64(1)...100 {
                _ = try await text(documents, of: AppDocument.Key(.alertText, of: AppSerial(app)))
            }
        }
        try await readAll()
        try await readAll()
        #expect(store.reads == 200)
        _ = try await text(documents, of: AppDocument.Key(.alertText, of: AppSerial(100)))
        #expect(store.reads == 200)
    }

    static let sealed: [SealedDocument] = [
        .init(text: "https://example.com/", sealed: [0, 1, 0, 255]), .init(text: "", sealed: []),
        .init(text: "é", sealed: [0]),
    ]

    @Test(arguments: sealed)
    func `a text and a secret are read as they were written`(document: SealedDocument) {
        #expect(SealedDocument(document.bytes) == document)
    }

    @Test func `bytes without both parts are none`() {
        #expect(SealedDocument(Array("text".utf8)) == nil)
        #expect(SealedDocument([]) == nil)
    }
}

/// The documents of the apps 1, 2 and so on, named `com.example.app1` and so on.
private final class CountedDocuments: AppDocumentStore {
    private struct State {
        var version = RegistryVersion(1)
        var documents: [AppDocument.Key: AppDocument] = [:]
        var reads = 0
        var lists = 0
        var made = 0
        var onRead: (@Sendable () -> Void)?
        var afterRead: (@Sendable () async -> Void)?
    }

    private let state = Mutex(State())

    var reads: Int { state.withLock { $0.reads } }
    var lists: Int { state.withLock { $0.lists } }
    var made: Int { state.withLock { $0.made } }

    func noteMade() { state.withLock { $0.made += 1 } }

    /// Runs the work once, when a document was found and is not returned yet.
    func onRead(_ work: @escaping @Sendable () -> Void) { state.withLock { $0.onRead = work } }

    /// Waits for the work once, behind that.
    func afterRead(_ work: @escaping @Sendable () async -> Void) { state.withLock { $0.afterRead = work } }

    func changeOther() { state.withLock { $0.version.rawValue += 1 } }

    @discardableResult func put(_ text: String, as key: AppDocument.Key) -> RegistryVersion {
        state.withLock { state in
            state.version.rawValue += 1
            state.documents[key] = AppDocument(
                key: key, bytes: Array(text.utf8), setAt: Sample.now, version: state.version)
            return state.version
        }
    }

    func registryVersion() async throws -> RegistryVersion { state.withLock { $0.version } }

    func document(_ key: AppDocument.Key) async throws -> AppDocument? {
        let (document, onRead, afterRead) = state.withLock { state in
            defer { (state.onRead, state.afterRead) = (nil, nil) }
            state.reads += 1
            return (state.documents[key], state.onRead, state.afterRead)
        }
        onRead?()
        await afterRead?()
        return document
    }

    func apps(with kind: AppDocument.Kind) async throws -> [App] {
        let serials = state.withLock { state in
            state.lists += 1
            return Set(state.documents.keys.filter { $0.kind == kind }.map(\.app))
        }
        return serials.compactMap { serial in
            AppID("com.example.app\(serial.rawValue)").map { App(serial: serial, id: $0, createdAt: Sample.now) }
        }
    }

    func putDocument(_ bytes: [UInt8], as key: AppDocument.Key, at now: Timestamp) async throws -> RegistryVersion? {
        put(String(decoding: bytes, as: UTF8.self), as: key)
    }

    func removeDocument(_ key: AppDocument.Key) async throws -> Bool {
        state.withLock { state in
            guard state.documents.removeValue(forKey: key) != nil else { return false }
            state.version.rawValue += 1
            return true
        }
    }
}
