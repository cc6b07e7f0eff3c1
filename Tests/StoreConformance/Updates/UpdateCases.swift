import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = UpdateFixture.start

extension StoreCase {
    static let published: [StoreCase] = [
        StoreCase("an update is stored as it was published, at the end of its app's log", updateIsKept),
        StoreCase("a repeated request publishes nothing more", repetitionIsAnswered),
        StoreCase("of concurrent requests with one key one publishes", oneOfConcurrentPublishes),
        StoreCase("a reader that knows an update never meets an earlier one later", logIsInOrder),
        StoreCase("of concurrent updates that supersede one the first is published", supersedesOnce),
        StoreCase("concurrent updates do not exceed the number of live updates", liveUpdatesAreLimited),
        StoreCase("updates without an index have a limit of their own", unindexedUpdatesAreLimited),
        StoreCase("the audiences of live updates do not exceed their bytes", audiencesAreLimited),
    ]
}

private func updateIsKept(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let definition = fixture.definition(
        .content, audience: "level > 1", ttl: 60, orderKey: "key", wakes: true, supersedes: nil)
    let put = try await store.publishUpdate(fixture.request(1, definition), at: start)
    guard case .made(let made, nil, let previous) = put else { throw StoreFixture.Missing() }
    #expect(previous == UpdateSerial(0))
    #expect(made.id == fixture.id(1) && made.app == fixture.app && made.kind == .content)
    #expect(made.audience == "level > 1" && made.orderKey == "key" && made.body == [1, 2])
    #expect(made.status == .live && made.wakes && made.mode == .once)
    #expect(made.publishedAt == start && made.expiresAt == start.adding(seconds: 60))
    #expect(!made.isPaused && !made.isResync && made.supersedes == nil)
    #expect(try await store.update(made.id, of: fixture.app) == made)
    var standing = fixture.definition(.popup)
    standing.mode = .standing
    let second = try await store.publishUpdate(fixture.request(2, standing), at: start)
    guard case .made(let later, nil, made.serial) = second else { throw StoreFixture.Missing() }
    #expect(later.serial > made.serial && later.mode == .standing)
    #expect(try await store.liveUpdates(of: fixture.app) == [made, later])
    let other = try await fixture.anotherApp()
    #expect(try await store.update(made.id, of: other) == nil)
    #expect(try await store.liveUpdates(of: other).isEmpty)
    #expect(try await store.update(fixture.id(3), of: fixture.app) == nil)
    let gone = AppSerial(other.rawValue + 99)
    guard case .refused(.appGone) = try await store.publishUpdate(fixture.request(4, standing, of: gone), at: start) else {
        throw StoreFixture.Missing()
    }
    #expect(try await store.deleteApp(try StoreFixture.appID, at: start))
    guard case .refused(.appGone) = try await store.publishUpdate(fixture.request(4, standing), at: start) else {
        throw StoreFixture.Missing()
    }
}

private func repetitionIsAnswered(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let full = UpdateLimits(live: 1)
    func put(_ number: UInt64, _ fingerprint: [UInt8], of app: AppSerial? = nil) async throws -> UpdatePut {
        let request = fixture.request(
            number, fixture.definition(), of: app, idempotency: ([1, 1], fingerprint), limits: full)
        return try await store.publishUpdate(request, at: start.adding(seconds: Int64(number)))
    }
    guard case .made(let made, _, _) = try await put(1, [5]) else { throw StoreFixture.Missing() }
    guard case .repeated(let same) = try await put(2, [5]) else { throw StoreFixture.Missing() }
    #expect(same == made, "although the app has as many as it may")
    guard case .refused(.keyReused) = try await put(3, [6]) else { throw StoreFixture.Missing() }
    guard case .made = try await put(4, [6], of: fixture.anotherApp()) else { throw StoreFixture.Missing() }
    #expect(try await store.withdrawUpdate(made, by: fixture.key, at: start))
    guard case .repeated(let ended) = try await put(5, [5]) else { throw StoreFixture.Missing() }
    #expect(ended.id == made.id && ended.status == .withdrawn)
    #expect(try await store.audit(of: fixture.app, before: nil, limit: 9).map(\.action) == [.withdrawn, .published])
}

private func oneOfConcurrentPublishes(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let puts = try await concurrently(8) { number in
        let request = fixture.request(number, fixture.definition(), idempotency: ([1], [2]))
        return try await fixture.store.publishUpdate(request, at: start)
    }
    var (made, repeated): ([UpdateID], [UpdateID]) = ([], [])
    for put in puts {
        switch put {
        case .made(let update, _, _): made.append(update.id)
        case .repeated(let update): repeated.append(update.id)
        default: Issue.record("\(put)")
        }
    }
    #expect(made.count == 1 && repeated.count == 7 && Set(repeated) == Set(made))
    #expect(try await fixture.store.liveUpdates(of: fixture.app).map(\.id) == made)
    #expect(try await fixture.store.audit(of: fixture.app, before: nil, limit: 9).count == 1)
}

private func logIsInOrder(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    try await withThrowingTaskGroup(of: Void.self) { group in
        for number in UInt64(1)...60 {
            group.addTask { _ = try await fixture.publish(number) }
        }
        var known: Set<UpdateSerial> = []
        for _ in 0..<60 {
            let serials = try await fixture.store.liveUpdates(of: fixture.app).map(\.serial)
            #expect(serials == serials.sorted())
            let (new, last) = (Set(serials).subtracting(known), known.max())
            if let last, let first = new.min() { #expect(first > last) }
            known.formUnion(new)
        }
        try await group.waitForAll()
    }
    #expect(try await fixture.store.liveUpdates(of: fixture.app).count == 60)
}

private func supersedesOnce(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let earlier = try await fixture.publish(1)
    let puts = try await concurrently(6) { number in
        let request = fixture.request(10 + number, fixture.definition(supersedes: earlier.id), limits: UpdateLimits(live: 1))
        return try await store.publishUpdate(request, at: start.adding(seconds: 5))
    }
    var (made, unknown): ([Update], Int) = ([], 0)
    for put in puts {
        switch put {
        case .made(let update, let superseded, let previous):
            made.append(update)
            #expect(superseded == earlier.serial && previous == UpdateSerial(0))
        case .refused(.supersededUnknown): unknown += 1
        default: Issue.record("\(put)")
        }
    }
    #expect(made.count == 1 && unknown == 5, "its place is free for the next")
    #expect(try await store.liveUpdates(of: fixture.app) == made && made.first?.supersedes == earlier.id)
    let ended = try #require(try await store.update(earlier.id, of: fixture.app))
    #expect(ended.status == .superseded && ended.statusAt == start.adding(seconds: 5))
    let foreign = fixture.request(20, fixture.definition(supersedes: made.first?.id), of: try await fixture.anotherApp())
    guard case .refused(.supersededUnknown) = try await store.publishUpdate(foreign, at: start) else {
        throw StoreFixture.Missing()
    }
}

private func liveUpdatesAreLimited(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let limits = UpdateLimits(live: 3)
    let puts = try await concurrently(8) { number in
        let put = try await store.publishUpdate(fixture.request(number, fixture.definition(), limits: limits), at: start)
        if case .refused(.tooMany) = put { return true } else { return false }
    }
    #expect(puts.filter(\.self).count == 5)
    let live = try await store.liveUpdates(of: fixture.app)
    #expect(live.count == 3)
    _ = try await fixture.publish(fixture.request(20, fixture.definition(), of: fixture.anotherApp(), limits: limits))
    #expect(try await store.withdrawUpdate(live[0], by: fixture.key, at: start))
    _ = try await fixture.publish(fixture.request(21, fixture.definition(), limits: limits))
    let excess = fixture.request(22, fixture.definition(), limits: limits)
    guard case .refused(.tooMany) = try await store.publishUpdate(excess, at: start) else { throw StoreFixture.Missing() }
    #expect(try await store.audit(of: fixture.app, before: nil, limit: 99).count == 5, "a refusal is not noted")
}

private func unindexedUpdatesAreLimited(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let limits = UpdateLimits(unindexed: 2)
    let puts = try await concurrently(5) { number in
        let request = fixture.request(number, fixture.definition(audience: "x"), isIndexed: false, limits: limits)
        let put = try await fixture.store.publishUpdate(request, at: start)
        if case .refused(.tooManyUnindexed) = put { return true } else { return false }
    }
    #expect(puts.filter(\.self).count == 3)
    _ = try await fixture.publish(fixture.request(9, fixture.definition(audience: "x"), limits: limits))
    #expect(try await fixture.store.liveUpdates(of: fixture.app).count == 3)
}

private func audiencesAreLimited(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    @Sendable func put(
        _ number: UInt64, _ bytes: Int, _ limit: Int, supersedes: UpdateID? = nil
    ) async throws -> Bool {
        let definition = fixture.definition(
            audience: String(repeating: "ü", count: bytes / 2) + String(repeating: "x", count: bytes % 2),
            supersedes: supersedes)
        let request = fixture.request(number, definition, limits: UpdateLimits(audienceBytes: limit))
        switch try await fixture.store.publishUpdate(request, at: start) {
        case .made: return true
        case .refused(.tooManyAudienceBytes): return false
        default: throw StoreFixture.Missing()
        }
    }
    let largest = UpdateLimits.audienceBytes
    #expect(try await put(1, largest, largest + 10))
    #expect(try await !put(2, 11, largest + 10), "bytes count, not letters")
    #expect(try await put(3, 10, largest + 10))
    #expect(try await !put(4, 1, largest + 10))
    #expect(try await put(5, largest - 1, largest + 10, supersedes: fixture.id(1)), "an ended update makes space")
    #expect(try await put(6, 1, largest + 10))
    #expect(try await !put(7, 2, largest + 10, supersedes: fixture.id(6)))
    #expect(try await fixture.store.update(fixture.id(6), of: fixture.app)?.status == .live)
    _ = try await fixture.publish(
        fixture.request(8, fixture.definition(), limits: UpdateLimits(audienceBytes: largest + 10)))
    let puts = try await concurrently(6) { try await put(20 + $0, 100, largest + 310) }
    #expect(puts.filter(\.self).count == 3)
}
