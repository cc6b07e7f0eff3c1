import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = StoreFixture.start

extension StoreCase {
    static let documents: [StoreCase] = [
        StoreCase("a document has one app, kind and name, and is replaced completely", documentIsKept),
        StoreCase("the apps with documents of a kind are listed by their names", appsAreListed),
        StoreCase("documents of a deleted app are removed at once", documentsGoWithTheirApp),
        StoreCase("each document has a later version than all before", versionsIncrease),
        StoreCase("of documents that are stored concurrently one remains, and it is removed once", documentsAtOnce),
    ]
}

extension AppDocumentStore {
    /// Stores a document without a name, or removes it for nil. Returns whether that changed something.
    @discardableResult func setDocument(_ kind: AppDocument.Kind, of app: AppSerial, to text: String?) async throws -> Bool {
        let key = AppDocument.Key(kind, of: app)
        guard let text else { return try await removeDocument(key) }
        return try await putDocument(Array(text.utf8), as: key, at: start) != nil
    }
}

/// A key of each kind, and a second one of credentials.
private func keys(of app: AppSerial) -> [AppDocument.Key] {
    let kinds = AppDocument.Kind.allCases.map { AppDocument.Key($0, of: app) }
    return kinds + [AppDocument.Key(.credential, of: app, name: "production")]
}

private func documentIsKept(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    var store = fixture.store
    let otherID = try #require(AppID("com.example.other"))
    let other = try #require(try await store.createApp(otherID, at: start))
    let all = keys(of: fixture.device.app) + keys(of: other.serial)
    var expected: [AppDocument] = []
    for (number, key) in all.enumerated() {
        #expect(try await store.document(key) == nil)
        let now = start.adding(seconds: Int64(number))
        let earlier = try #require(try await store.putDocument([9, 9, 9], as: key, at: start))
        let version = try #require(try await store.putDocument([0, UInt8(number), 255], as: key, at: now))
        #expect(earlier < version)
        expected.append(AppDocument(key: key, bytes: [0, UInt8(number), 255], setAt: now, version: version))
    }
    let empty = try #require(try await store.putDocument([], as: all[0], at: start))
    expected[0] = AppDocument(key: all[0], bytes: [], setAt: start, version: empty)
    for document in expected { #expect(try await store.document(document.key) == document) }
    if let again = try await stores.restart(store) { store = again }
    for document in expected { #expect(try await store.document(document.key) == document) }
    for (place, key) in all.enumerated() {
        #expect(try await store.removeDocument(key))
        #expect(try await !store.removeDocument(key))
        #expect(try await store.document(key) == nil)
        for document in expected[(place + 1)...] { #expect(try await store.document(document.key) == document) }
    }
}

private func appsAreListed(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let store = fixture.store
    let (firstID, lastID) = (try #require(AppID("com.example.aaa")), try #require(AppID("com.example.zzz")))
    let first = try #require(try await store.createApp(firstID, at: start))
    let last = try #require(try await store.createApp(lastID, at: start))
    let app = try #require(try await store.app(try StoreFixture.appID))
    for kind in AppDocument.Kind.allCases { #expect(try await store.apps(with: kind).isEmpty) }
    for name in ["sandbox", "production"] {
        for listed in [last, app, first] {
            _ = try await store.putDocument([1], as: AppDocument.Key(.credential, of: listed.serial, name: name), at: start)
        }
    }
    #expect(try await store.apps(with: .credential) == [first, app, last], "each once")
    for kind in AppDocument.Kind.allCases where kind != .credential {
        #expect(try await store.apps(with: kind).isEmpty, "\(kind)")
    }
    _ = try await store.deleteApp(first.id, at: start)
    for name in ["sandbox", "production"] {
        #expect(try await store.apps(with: .credential) == [app, last])
        #expect(try await store.removeDocument(AppDocument.Key(.credential, of: last.serial, name: name)))
    }
    #expect(try await store.apps(with: .credential) == [app])
}

private func documentsGoWithTheirApp(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let (store, id, app) = (fixture.store, try StoreFixture.appID, fixture.device.app)
    for key in keys(of: app) { #expect(try await store.putDocument([1], as: key, at: start) != nil) }
    #expect(try await store.deleteApp(id, at: start))
    func isGone() async throws {
        for key in keys(of: app) {
            #expect(try await store.document(key) == nil, "\(key.kind)")
            #expect(try await store.apps(with: key.kind).isEmpty, "\(key.kind)")
            #expect(try await store.putDocument([2], as: key, at: start) == nil, "\(key.kind)")
            #expect(try await !store.removeDocument(key), "\(key.kind)")
        }
    }
    try await isGone()
    let next = try #require(try await store.createApp(id, at: start))
    for key in keys(of: next.serial) { #expect(try await store.document(key) == nil, "\(key.kind)") }
    try await isGone()
    while try await !store.continueDeletions(at: start, limit: 100).isDone {}
    try await isGone()
    let key = AppDocument.Key(.realm, of: next.serial)
    #expect(try await store.putDocument([3], as: key, at: start) != nil)
    #expect(try await store.apps(with: .realm) == [next])
    let nobody = AppDocument.Key(.realm, of: AppSerial(next.serial.rawValue + 1))
    #expect(try await store.putDocument([3], as: nobody, at: start) == nil)
    #expect(try await store.document(nobody) == nil)
}

private func versionsIncrease(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let (store, app) = (fixture.store, fixture.device.app)
    let key = AppDocument.Key(.itemRules, of: app)
    let versions = try await atOnce(16) { number in
        let kind = AppDocument.Kind.allCases[number % AppDocument.Kind.allCases.count]
        return try await store.putDocument([UInt8(number)], as: AppDocument.Key(kind, of: app), at: start)
    }
    #expect(Set(versions.compactMap { $0 }).count == 16)
    let last = try #require(versions.compactMap { $0 }.max())
    #expect(try await store.registryVersion() == last)
    #expect(try await store.removeDocument(key))
    let again = try #require(try await store.putDocument([1], as: key, at: start))
    #expect(again > last, "a removed version does not come back")
    #expect(try await store.document(key)?.version == again)
}

private func documentsAtOnce(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let (store, app) = (fixture.store, fixture.device.app)
    let key = AppDocument.Key(.credential, of: app, name: "production")
    for _ in 0..<5 {
        let versions = try await atOnce(8) { number in
            let now = start.adding(seconds: Int64(number))
            return try await store.putDocument([UInt8(number)], as: key, at: now)
        }
        let left = try #require(try await store.document(key))
        let number = try #require(left.bytes.first.map(Int.init))
        #expect(left.bytes.count == 1 && left.setAt == start.adding(seconds: Int64(number)), "all of it is of one call")
        #expect(left.version == versions[number])
        #expect(versions.compactMap { $0 }.max() == left.version, "the last one")
        let isRemoved = try await atOnce(8) { _ in try await store.removeDocument(key) }
        #expect(isRemoved.filter { $0 }.count == 1)
    }
}
