import CarillonCore
import CarillonWire
import Testing

private let start = StoreFixture.start

extension StoreCase {
    static let vetoes: [StoreCase] = [
        StoreCase("an approval hook is its app's, and is replaced whole", vetoIsKept),
        StoreCase("an approval hook goes with its app", vetoGoesWithItsApp),
        StoreCase("of approval hooks that are set at once one is there, and it is removed once", vetoesAtOnce),
    ]
}

private func veto(_ app: AppSerial, _ number: Int) -> StoredVeto {
    StoredVeto(
        app: app, address: "https://example.com/\(number)", sealed: [UInt8(number), 1],
        setAt: start.adding(seconds: Int64(number)))
}

private func stored(_ store: any Store) async throws -> [AppID: StoredVeto] {
    let all = try await store.vetoes()
    let byApp = Dictionary(all.map { ($0.app, $0.veto) }) { first, _ in first }
    #expect(byApp.count == all.count, "an app has one")
    return byApp
}

private func vetoIsKept(_ stores: any StoreMaker) async throws {
    var fixture = try await StoreFixture(stores)
    let (id, app) = (try StoreFixture.appID, fixture.device.app)
    let otherID = try #require(AppID("com.example.other"))
    let other = try #require(try await fixture.store.createApp(otherID, at: start))
    #expect(try await stored(fixture.store).isEmpty)
    #expect(try await !fixture.store.removeVeto(of: app))
    #expect(try await fixture.store.putVeto(veto(app, 1)))
    #expect(try await fixture.store.putVeto(veto(other.serial, 2)))
    #expect(try await stored(fixture.store) == [id: veto(app, 1), otherID: veto(other.serial, 2)])
    #expect(try await fixture.store.putVeto(veto(app, 3)))
    #expect(try await stored(fixture.store) == [id: veto(app, 3), otherID: veto(other.serial, 2)])
    if let again = try await stores.reopen(fixture.store, StoreSettings()) { fixture = fixture.again(again) }
    #expect(try await stored(fixture.store) == [id: veto(app, 3), otherID: veto(other.serial, 2)])
    #expect(try await fixture.store.removeVeto(of: app))
    #expect(try await !fixture.store.removeVeto(of: app))
    #expect(try await stored(fixture.store) == [otherID: veto(other.serial, 2)])
}

private func vetoGoesWithItsApp(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let (store, id, app) = (fixture.store, try StoreFixture.appID, fixture.device.app)
    #expect(try await store.putVeto(veto(app, 1)))
    _ = try await store.deleteApp(id, at: start)
    #expect(try await stored(store).isEmpty)
    #expect(try await !store.putVeto(veto(app, 2)), "the app is gone for everybody")
    let next = try #require(try await store.createApp(id, at: start))
    #expect(try await stored(store).isEmpty, "another app of the name has none")
    while try await !store.continueDeletions(at: start, limit: 100).isDone {}
    #expect(try await !store.removeVeto(of: app))
    #expect(try await store.putVeto(veto(next.serial, 3)))
    #expect(try await stored(store) == [id: veto(next.serial, 3)])
}

private func vetoesAtOnce(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let (store, app) = (fixture.store, fixture.device.app)
    for _ in 0..<5 {
        let isPut = try await atOnce(8) { try await store.putVeto(veto(app, $0)) }
        #expect(isPut == Array(repeating: true, count: 8))
        let left = try #require(try await stored(store)[try StoreFixture.appID])
        #expect((0..<8).map { veto(app, $0) }.contains(left), "all of it is of one call")
        let isRemoved = try await atOnce(8) { _ in try await store.removeVeto(of: app) }
        #expect(isRemoved.filter { $0 }.count == 1)
    }
}
