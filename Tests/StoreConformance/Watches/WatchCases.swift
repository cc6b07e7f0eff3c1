import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = StoreFixture.start

extension StoreCase {
    static let watch: [StoreCase] = [
        StoreCase("a watch is stored as it was put", watchIsKeptAsItWasPut),
        StoreCase(
            "another put changes all but the secret, which changes on request", anotherPutChangesAllButTheSecret),
        StoreCase("repeated puts do not delay a ping", puttingAgainPutsNoPingOff),
        StoreCase("a closed channel cannot be watched, and its watch is removed with it", closedChannelCannotBeWatched),
        StoreCase("a removed watch is pinged no more, and a new one is another watch", removedWatchIsPingedNoMore),
    ]
}

private func watchIsKeptAsItWasPut(_ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores)
    #expect(try await fixture.store.watch(of: fixture.base.first.serial) == nil)
    let made = try await fixture.put(fixture.request(every: 90, gone: "https://example.com/gone?a=b"))
    #expect(made.isNew)
    let watch = made.watch
    #expect(watch.ping?.address.text == "http://example.com/ping")
    #expect(watch.ping?.intervalSeconds == 90)
    #expect(watch.disconnectAddress?.text == "https://example.com/gone?a=b")
    #expect(watch.sealed == Watch.Sealed(secret: [1], token: [1, 2]))
    #expect(watch.channel == fixture.base.first.serial)
    #expect(watch.device == fixture.base.device.serial)
    #expect(watch.channelID == fixture.base.first.id)
    #expect(watch.dueAt == start)
    #expect(watch.lastPing == nil)
    #expect(try await fixture.store.watch(of: fixture.base.first.serial) == watch)
    #expect(try await fixture.store.watch(of: fixture.base.second.serial) == nil)
}

private func anotherPutChangesAllButTheSecret(_ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores)
    let first = try await fixture.put(fixture.request()).watch
    let later = start.adding(seconds: 9)
    let second = try await fixture.put(
        fixture.request(ping: nil, gone: "http://example.com/gone", secret: 2), at: later)
    #expect(!second.isNew)
    #expect(second.watch.serial == first.serial)
    #expect(second.watch.revision > first.revision)
    #expect(second.watch.ping == nil)
    #expect(second.watch.dueAt == nil)
    #expect(second.watch.sealed == Watch.Sealed(secret: [1], token: [2, 2]))
    #expect(second.watch.createdAt == start)
    let third = try await fixture.put(fixture.request(secret: 3, renews: true))
    #expect(third.watch.sealed.secret == [3])
    #expect(third.watch.disconnectAddress == nil)
}

private func puttingAgainPutsNoPingOff(_ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores)
    _ = try await fixture.put(fixture.request(due: start.adding(seconds: 10)))
    let again = try await fixture.put(fixture.request(due: start.adding(seconds: 40)))
    #expect(again.watch.dueAt == start.adding(seconds: 10))
    let elsewhere = try await fixture.put(
        fixture.request(ping: "http://other.example", due: start.adding(seconds: 40)))
    #expect(elsewhere.watch.dueAt == start.adding(seconds: 40))
}

private func closedChannelCannotBeWatched(_ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores)
    _ = try await fixture.put(fixture.request())
    _ = try await fixture.store.closeChannel(
        fixture.base.first.id, device: fixture.base.device.serial, at: start)
    #expect(try await fixture.store.watch(of: fixture.base.first.serial) == nil)
    #expect(try await fixture.store.putWatch(fixture.request(), at: start) == .channelGone)
    #expect(try await fixture.lease(at: WatchFixture.aMonth).isEmpty)
}

private func removedWatchIsPingedNoMore(_ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores)
    let first = try await fixture.put(fixture.request()).watch
    #expect(try await fixture.store.removeWatch(of: first.channel))
    #expect(try await !fixture.store.removeWatch(of: first.channel))
    #expect(try await fixture.lease(at: WatchFixture.aMonth).isEmpty)
    let second = try await fixture.put(fixture.request(secret: 5))
    #expect(second.isNew)
    #expect(second.watch.serial != first.serial)
    #expect(second.watch.sealed.secret == [5])
}
