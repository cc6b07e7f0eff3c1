import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = UpdateFixture.start

extension StoreCase {
    static let audiences: [StoreCase] = [
        StoreCase(
            "an update that a device never received is forgotten when the device leaves its audience",
            neverReceivedIsForgotten),
        StoreCase(
            "a received update is marked when its device leaves an audience, and continues when it returns", leftIsMarked),
        StoreCase("a binding of another revision leaves and returns to nothing", otherRevisionChangesNothing),
        StoreCase("an unsupported update leaves the inbox with its completion", unsupportedLeaves),
        StoreCase("earlier content that a device did not receive is coalesced once", contentIsCoalesced),
        StoreCase("coalesced content is due again when its replacement ends", coalescedIsRevived),
        StoreCase("revived content is behind an earlier update of its order key", revivedStandsBehind),
        StoreCase("coalesced content that expired must be fetched when its replacement ends", coalescedIsMissed),
        StoreCase("content that expires is missed if its device may not have it", expiringContentIsMissed),
        StoreCase("concurrent requests to fetch everything have one update and one entry", resyncIsMadeOnce),
        StoreCase("a request to fetch everything replaces all content that was not received", resyncStandsForContent),
    ]
}

private func neverReceivedIsForgotten(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let binding = try await fixture.bind()
    let updates = [try await fixture.publish(1), try await fixture.publish(2), try await fixture.publish(3)]
    for (position, update) in updates.prefix(2).enumerated() {
        try await fixture.give(Int64(position + 1), update, to: binding)
    }
    try await fixture.evaluate([updates[2]], binding)
    let names = [updates[0], updates[2]].map { fixture.name($0, binding) }
    let takenOut = try await store.leftAudience(names, of: binding.serial, revision: binding.revision, at: start)
    #expect(takenOut == [fixture.base.envelope(1).id])
    #expect(try await fixture.base.waiting().map(\.position) == [2])
    #expect(try await store.completions(of: binding.serial, updates.map(\.serial)).map(\.key.update) == [updates[1].serial])
    #expect(try await store.leftAudience(names, of: binding.serial, revision: binding.revision, at: start).isEmpty)
    // It is delivered like a new one when the device returns.
    try await fixture.give(4, updates[0], to: binding)
}

private func leftIsMarked(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let binding = try await fixture.bind()
    let (kept, again) = (try await fixture.publish(1), try await fixture.publish(2))
    for (position, update) in [kept, again].enumerated() {
        try await fixture.give(Int64(position + 1), update, to: binding)
        try await fixture.receive(Int64(position + 1), of: binding)
    }
    try await fixture.report(.failed(isPermanent: false, reason: nil), of: again, binding)
    try await fixture.give(3, again, to: binding, attempt: 2)
    let names = [kept, again].map { fixture.name($0, binding) }
    let takenOut = try await store.leftAudience(names, of: binding.serial, revision: binding.revision, at: start)
    #expect(takenOut == [fixture.base.envelope(3).id])
    #expect(try await fixture.base.waiting().isEmpty)
    let left = try await store.completions(of: binding.serial, [kept, again].map(\.serial))
    #expect(left.map(\.hasLeftAudience) == [true, true])
    #expect(left.map(\.machine.state) == [.stored, .gone], "the device can complete its received update")
    #expect(try await store.commit([fixture.offer(4, again, to: binding, attempt: 3)]) == [.originGone])
    let later = start.adding(seconds: 9)
    try await store.returned(names, of: binding.serial, revision: binding.revision, at: later)
    let back = try await store.completions(of: binding.serial, [kept, again].map(\.serial))
    #expect(back.map(\.hasLeftAudience) == [false, false])
    #expect(back.map(\.machine.state) == [.stored, .waiting] && back[1].machine.dueAt == later)
    try await store.returned(names, of: binding.serial, revision: binding.revision, at: later.adding(seconds: 9))
    #expect(try await store.completions(of: binding.serial, [again.serial]).map(\.machine.dueAt) == [later])
}

private func otherRevisionChangesNothing(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let binding = try await fixture.bind()
    let update = try await fixture.publish(1)
    try await fixture.give(1, update, to: binding)
    let before = try #require(try await fixture.completion(update, binding))
    let (names, other) = ([before.key], binding.revision + 1)
    #expect(try await store.leftAudience(names, of: binding.serial, revision: other, at: start).isEmpty)
    try await store.unsupported(names, of: binding.serial, revision: other, at: start)
    try await store.returned(names, of: binding.serial, revision: other, at: start)
    try await store.putOff(before.key, revision: other, until: start)
    #expect(try await fixture.completion(update, binding) == before)
    #expect(try await fixture.base.waiting().map(\.position) == [1])
    _ = try await fixture.bind("other")
    #expect(try await store.leftAudience(names, of: binding.serial, revision: other, at: start).isEmpty, "it ended")
}

private func unsupportedLeaves(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let binding = try await fixture.bind()
    let (first, second) = (try await fixture.publish(1), try await fixture.publish(2))
    try await fixture.give(1, first, to: binding)
    try await fixture.give(2, second, to: binding)
    let later = start.adding(seconds: 9)
    for _ in 0..<2 {
        try await store.unsupported(
            [fixture.name(first, binding)], of: binding.serial, revision: binding.revision, at: later)
    }
    let completion = try #require(try await fixture.completion(first, binding))
    #expect(completion.machine.state == .unsupported && completion.changedAt == later)
    #expect(try await fixture.base.waiting().map(\.position) == [2])
    #expect(try await fixture.state(second, binding) == .waiting)
}

private func contentIsCoalesced(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let binding = try await fixture.bind()
    var updates: [Update] = []
    for number in UInt64(1)...4 { updates.append(try await fixture.publish(number, .content)) }
    for (position, update) in updates.enumerated() {
        try await fixture.give(Int64(position + 1), update, to: binding)
    }
    try await fixture.receive(2, of: binding)
    let unreceived = try await store.unreceivedContent(of: binding.serial)
    #expect(unreceived.completions.map(\.key.update) == [0, 2, 3].map { updates[$0].serial })
    #expect(unreceived.resync == nil)
    let coalesced = updates.prefix(2).map { (fixture.name($0, binding), by: updates[3].serial) }
    let takenOut = try await store.coalesce(coalesced, at: start)
    #expect(takenOut == [fixture.base.envelope(1).id], "the device has the second")
    #expect(try await store.coalesce(coalesced, at: start).isEmpty)
    #expect(try await fixture.base.waiting().map(\.position) == [3, 4])
    let completion = try #require(try await fixture.completion(updates[0], binding))
    #expect(completion.machine.state == .superseded && completion.machine.reason == "absorbed")
    #expect(try await fixture.state(updates[1], binding) == .stored)
}

private func coalescedIsRevived(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let binding = try await fixture.bind()
    let (earlier, later) = (try await fixture.publish(1, .content), try await fixture.publish(2, .content))
    try await fixture.give(1, earlier, to: binding)
    try await fixture.give(2, later, to: binding)
    _ = try await store.coalesce([(fixture.name(earlier, binding), by: later.serial)], at: start)
    let moment = start.adding(seconds: 9)
    try await store.endCompletions([(fixture.name(later, binding), .withdrawn)], at: moment)
    let completion = try #require(try await fixture.completion(earlier, binding))
    #expect(completion.machine.state == .waiting && completion.machine.attempt == 0 && completion.machine.dueAt == moment)
}

private func revivedStandsBehind(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let binding = try await fixture.bind()
    let definition = fixture.definition(.content, orderKey: "k")
    let first = try await fixture.publish(fixture.request(1, definition))
    let content = try await fixture.publish(fixture.request(2, definition))
    let coalescer = try await fixture.publish(3, .content)
    try await fixture.give(1, first, to: binding)
    try await fixture.evaluate([content, coalescer], binding)
    _ = try await store.coalesce([(fixture.name(content, binding), by: coalescer.serial)], at: start)
    #expect(try await fixture.state(content, binding) == .superseded)
    try await store.endCompletions([(fixture.name(coalescer, binding), .withdrawn)], at: start)
    #expect(try await fixture.completion(content, binding)?.machine == CompletionMachine())
    let later = start.adding(seconds: 9)
    try await fixture.report(.done, of: first, binding, at: later)
    #expect(try await fixture.completion(content, binding)?.machine == CompletionMachine(dueAt: later))
}

private func coalescedIsMissed(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let binding = try await fixture.bind()
    let earlier = try await fixture.publish(1, .content, ttl: 60)
    let later = try await fixture.publish(2, .content)
    try await fixture.evaluate([earlier, later], binding)
    _ = try await store.coalesce([(fixture.name(earlier, binding), by: later.serial)], at: start)
    let end = start.adding(seconds: 60)
    #expect(try await store.endExpiredUpdates(at: end, limit: 9).map(\.update) == [earlier.serial])
    #expect(try await store.presentBinding(of: fixture.device)?.needsResync == false)
    try await store.endCompletions([(fixture.name(later, binding), .withdrawn)], at: end)
    #expect(try await store.presentBinding(of: fixture.device)?.needsResync == true)
    #expect(try await fixture.state(earlier, binding) == .superseded)
}

private func expiringContentIsMissed(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let content = try await fixture.publish(1, .content)
    let later = start.adding(seconds: 9)
    let stored = CompletionMachine(.stored, attempt: 1, isReceived: true, dueAt: later)
    func needsResync(_ number: UInt8, _ machine: CompletionMachine, bindingEnds: Bool = false) async throws -> Bool {
        let device = try await fixture.anotherDevice(number).serial
        let binding = try await fixture.bind("one", device)
        try await fixture.evaluate([content], binding, machine: machine)
        if bindingEnds { _ = try await fixture.bind("other", device) }
        try await store.endCompletions([(fixture.name(content, binding), .expired)], at: start)
        // Without this, content that ended without a result is to be fetched when the binding begins again.
        #expect(try await fixture.report(.done, of: content, binding) == .late)
        let again = try await fixture.bind("one", device)
        #expect(again.serial == binding.serial)
        return again.needsResync
    }
    #expect(try await needsResync(1, CompletionMachine(.waiting, attempt: 1)))
    #expect(try await !needsResync(2, stored))
    #expect(try await needsResync(3, stored, bindingEnds: true))
}

private func resyncRequest(_ fixture: UpdateFixture, _ number: UInt64) -> ResyncRequest {
    ResyncRequest(proposed: fixture.id(1000 + number), body: [9, UInt8(number)])
}

private func resyncIsMadeOnce(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let binding = try await fixture.bind()
    let resyncs = try await concurrently(5) { number in
        try await store.resync(binding.serial, resyncRequest(fixture, number), at: start)
    }
    let serial = try #require(resyncs.first).update
    #expect(resyncs.map(\.update) == Array(repeating: serial, count: 5))
    let completion = try #require(try await store.completions(of: binding.serial, [serial]).first)
    #expect(completion.key.entry == 1, "an entry that was not received covers all")
    #expect(completion.machine == CompletionMachine(.waiting, dueAt: start))
    #expect(try await store.liveUpdates(of: fixture.app).isEmpty, "it is in no log")
    let due = try #require(try await store.dueCompletions(of: binding.serial, at: start, limit: 9).first)
    #expect(due.update.isResync && due.update.kind == .content && due.update.body.first == 9)
    #expect(try await fixture.base.waiting().isEmpty)
    // An entry that the device has replaces no later one.
    try await fixture.give(1, due.update, to: binding, isAgain: true)
    try await fixture.receive(1, of: binding)
    _ = try await store.resync(binding.serial, resyncRequest(fixture, 9), at: start)
    #expect(try await store.completions(of: binding.serial, [serial]).map(\.key.entry) == [2])
    let other = try await fixture.bind("main", fixture.anotherDevice().serial)
    #expect(try await store.resync(other.serial, resyncRequest(fixture, 8), at: start).update == serial, "an app has one")
    _ = try await fixture.bind("other")
    let ended = try await store.resync(binding.serial, resyncRequest(fixture, 7), at: start)
    #expect(ended.update == UpdateSerial(0) && ended.coalesced.isEmpty, "the binding ended")
}

private func resyncStandsForContent(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let binding = try await fixture.bind()
    let (content, popup) = (try await fixture.publish(1, .content), try await fixture.publish(2, .popup))
    try await fixture.give(1, content, to: binding)
    try await fixture.give(2, popup, to: binding)
    try await store.offerAgain(to: binding.serial, needsResync: true, at: start)
    let resync = try await store.resync(binding.serial, resyncRequest(fixture, 1), at: start)
    #expect(resync.coalesced == [fixture.base.envelope(1).id])
    #expect(try await fixture.base.waiting().map(\.position) == [2])
    #expect(try await fixture.state(content, binding) == .superseded)
    let present = try #require(try await store.presentBinding(of: fixture.device))
    #expect(!present.needsResync && present.seenTo >= popup.serial)
    let unreceived = try await store.unreceivedContent(of: binding.serial)
    #expect(unreceived.completions.isEmpty && unreceived.resync == resync.update)
    // A request to fetch everything replaces the content even if it fails.
    let key = CompletionKey(update: resync.update, binding: binding.serial, entry: 1)
    try await store.endCompletions([(key, .withdrawn)], at: start)
    #expect(try await store.completions(of: binding.serial, [resync.update]).map(\.machine.state) == [.withdrawn])
    #expect(try await fixture.state(content, binding) == .superseded)
    #expect(try await store.presentBinding(of: fixture.device)?.needsResync == false)
}
