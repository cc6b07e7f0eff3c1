import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = StoreFixture.start

extension StoreCase {
    static let contents: [StoreCase] = [
        StoreCase("equal bodies are kept apart, each until it is released", equalBodiesAreKeptApart),
        StoreCase("a body that is released is kept while an envelope points to it", releasedBodyIsKept),
    ]
}

private func pointing(_ position: Int64, to content: SharedContentID, _ fixture: StoreFixture) -> Envelope {
    var envelope = fixture.envelope(position)
    envelope.kind = .message(.init(body: [1, 2, 3], coding: ContentCoding(.identity), shared: content))
    return envelope
}

private func isRefused(_ envelope: Envelope, _ fixture: StoreFixture) async throws -> Bool {
    // With another change beside it, a change that cannot be stored is answered for itself.
    let results = try await fixture.store.commit([.append(envelope, AppendRules()), fixture.acknowledge(9999)])
    return if case .failed = results[0] { true } else { false }
}

private func equalBodiesAreKeptApart(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let store = fixture.store
    let ids = try await concurrently(6) { _ in try await store.addContent([1, 2, 3]) }
    #expect(Set(ids).count == 6)
    for _ in 0..<2 { try await store.releaseContent(ids[0]) }
    _ = try await store.sweep(at: start, limit: 10)
    #expect(try await isRefused(pointing(1, to: ids[0], fixture), fixture), "nothing points to it any more")
    try await store.releaseContent(ids[0])
    let envelope = pointing(2, to: ids[1], fixture)
    #expect(try await fixture.append(envelope) == .stored(replaced: nil))
    #expect(try await fixture.waiting() == [envelope])
}

private func releasedBodyIsKept(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let store = fixture.store
    let content = try await store.addContent([1, 2, 3])
    let envelope = pointing(1, to: content, fixture)
    #expect(try await fixture.append(envelope) == .stored(replaced: nil))
    try await store.releaseContent(content)
    _ = try await store.sweep(at: start, limit: 10)
    #expect(try await fixture.waiting() == [envelope])
    // It is removed with the last envelope, also if that expires.
    while try await !store.sweep(at: start.adding(seconds: 60), limit: 10).isDone {}
    _ = try await store.sweep(at: start.adding(seconds: 60), limit: 10)
    #expect(try await fixture.waiting(at: start).isEmpty)
    #expect(try await isRefused(pointing(2, to: content, fixture), fixture))
}
