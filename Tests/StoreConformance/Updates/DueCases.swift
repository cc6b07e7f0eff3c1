import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = UpdateFixture.start

extension StoreCase {
    static let due: [StoreCase] = [
        StoreCase("a completion is due at its moment, while its update lives and its binding is present", dueAtItsMoment),
        StoreCase("a completion that does not fit is deferred", completionIsPutOff),
        StoreCase("a clock that was set back lengthens no wait", completionsAreBroughtBack),
        StoreCase("parked completions are requeued once, and the audit contains their number", parkedAreRequeued),
        StoreCase("a paused update is delivered to nobody until it is resumed", pausedIsResumed),
        StoreCase("an update is resumed only if its audience fits", resumptionIsLimited),
        StoreCase("bindings are woken for the first update of each app", wakingGoesOn),
        StoreCase("a poll finds a device, its binding and the waiting updates", pollFinds),
    ]
}

private func dueAtItsMoment(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let other = try await fixture.anotherDevice()
    let (binding, second) = (try await fixture.bind(), try await fixture.bind("main", other.serial))
    let (update, ended) = (try await fixture.publish(1), try await fixture.publish(2))
    func stored(_ seconds: Int64) -> CompletionMachine {
        CompletionMachine(.stored, attempt: 1, dueAt: start.adding(seconds: seconds))
    }
    try await fixture.evaluate([update, ended], binding, machine: stored(5))
    try await fixture.evaluate([update], second, machine: stored(3))
    _ = try await store.withdrawUpdate(ended, by: fixture.key, at: start)
    func due(_ milliseconds: Int64, of binding: UpdateBinding? = nil, limit: Int = 9) async throws -> [CompletionKey] {
        try await store.dueCompletions(
            of: binding?.serial, at: start.adding(milliseconds: milliseconds), limit: limit
        ).map(\.completion.key)
    }
    let (mine, others) = (fixture.name(update, binding), fixture.name(update, second))
    #expect(try await due(2999).isEmpty)
    #expect(try await due(3000) == [others])
    #expect(try await due(4999) == [others])
    #expect(try await due(5000) == [others, mine], "in the order of their moments")
    #expect(try await due(5000, limit: 1) == [others])
    #expect(try await due(4999, of: binding).isEmpty)
    #expect(try await due(5000, of: binding) == [mine])
    let found = try #require(try await store.dueCompletions(of: second.serial, at: start.adding(seconds: 3), limit: 1).first)
    #expect(found.update == update && found.device == other.id && found.binding.serial == second.serial)
    #expect(found.app == (try StoreFixture.appID) && found.completion.machine == stored(3))
    _ = try await fixture.bind("other", other.serial)
    #expect(try await due(5000) == [mine], "its binding ended")
}

private func completionIsPutOff(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let binding = try await fixture.bind()
    let (update, other) = (try await fixture.publish(1), try await fixture.publish(2))
    try await fixture.evaluate([update], binding, machine: CompletionMachine(.stored, attempt: 1, dueAt: start))
    try await fixture.give(1, other, to: binding)
    let later = start.adding(seconds: 60)
    try await store.putOff(fixture.name(update, binding), revision: binding.revision, until: later)
    try await store.putOff(fixture.name(other, binding), revision: binding.revision, until: later)
    #expect(try await fixture.completion(update, binding)?.machine.dueAt == later)
    #expect(try await fixture.completion(other, binding)?.machine.dueAt == nil, "it was not due")
}

private func completionsAreBroughtBack(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let binding = try await fixture.bind()
    var updates: [Update] = []
    for number in UInt64(1)...3 { updates.append(try await fixture.publish(number, ttl: 1_000_000)) }
    // Written by a clock that was a day ahead.
    let ahead = start.adding(seconds: 86_400)
    let machine = CompletionMachine(.deferred, attempt: 1, dueAt: ahead.adding(seconds: 50))
    try await fixture.evaluate(Array(updates[..<2]), binding, machine: machine, at: ahead)
    try await fixture.evaluate(
        [updates[2]], binding, machine: CompletionMachine(.deferred, attempt: 1, dueAt: start.adding(seconds: 70)))
    #expect(try await store.bringBackCompletions(dueAfter: ahead.adding(seconds: 50), at: start, limit: 9))
    #expect(try await fixture.completion(updates[0], binding)?.machine.dueAt == machine.dueAt, "it is due by then")
    #expect(try await !store.bringBackCompletions(dueAfter: start, at: start, limit: 1))
    while try await !store.bringBackCompletions(dueAfter: start, at: start, limit: 1) {}
    let found = try await store.completions(of: binding.serial, updates.map(\.serial)).map(\.machine.dueAt)
    #expect(found == [50, 50, 70].map { start.adding(seconds: $0) })
    // No state waits for longer than it may.
    let late = try await fixture.publish(9, ttl: 1_000_000)
    let far = start.adding(seconds: 10 * CompletionMachine.fullSeconds)
    try await fixture.evaluate([late], binding, machine: CompletionMachine(.waiting, dueAt: far))
    #expect(try await store.bringBackCompletions(dueAfter: start, at: start, limit: 9))
    #expect(
        try await fixture.completion(late, binding)?.machine.dueAt == start.adding(seconds: CompletionMachine.fullSeconds))
}

private func parkedAreRequeued(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let update = try await fixture.publish(1)
    var bindings: [UpdateBinding] = []
    for number in UInt8(1)...3 { bindings.append(try await fixture.bind("main", fixture.anotherDevice(number).serial)) }
    for binding in bindings.prefix(2) {
        try await fixture.evaluate([update], binding, machine: CompletionMachine(.parked, attempt: 4, failures: 9))
    }
    try await fixture.evaluate([update], bindings[2], machine: CompletionMachine(.stored, attempt: 1))
    let names = bindings.map { fixture.name(update, $0) } + [fixture.name(update, bindings[0], entry: 7)]
    let now = start.adding(seconds: 9)
    let counts = try await concurrently(4) { _ in
        try await store.requeue(names, at: now, noting: (key: fixture.key, update: update.id), of: fixture.app)
    }
    #expect(counts.sorted() == [0, 0, 0, 2], "each is put back once")
    let machine = try #require(try await fixture.completion(update, bindings[0])).machine
    #expect(machine.state == .failed && machine.failures == 0 && machine.dueAt == now && machine.attempt == 4)
    #expect(try await fixture.state(update, bindings[2]) == .stored)
    let audit = try await store.audit(of: fixture.app, before: nil, limit: 9)
    #expect(audit.map(\.action) == [.requeued, .requeued, .requeued, .requeued, .published])
    #expect(audit.compactMap(\.count).sorted() == [0, 0, 0, 2] && audit.first?.key == fixture.key)
}

private func pausedIsResumed(_ stores: any StoreMaker) async throws {
    var fixture = try await UpdateFixture(stores)
    let binding = try await fixture.bind()
    let (given, due) = (try await fixture.publish(1, ttl: 5000), try await fixture.publish(2, ttl: 5000))
    try await fixture.give(1, given, to: binding)
    try await fixture.evaluate([due], binding, machine: CompletionMachine(.stored, attempt: 1, dueAt: start))
    let running = try await fixture.store.resumeUpdate(given, by: fixture.key, audienceBytes: 0, at: start)
    #expect(running == .notPaused)
    guard let store = try await stores.restored(fixture.store, holdsUpdates: true) else { return }
    fixture = fixture.again(store)
    let before = try #require(try await store.logMark(of: fixture.app))
    let paused = try #require(try await store.update(due.id, of: fixture.app))
    #expect(paused.isPaused && paused.status == .live)
    #expect(try await store.liveUpdates(of: fixture.app).isEmpty)
    #expect(try await store.updates(of: fixture.app, .paused, before: nil, limit: 9).map(\.id) == [due.id, given.id])
    #expect(try await store.updates(of: fixture.app, .live, before: nil, limit: 9).count == 2)
    #expect(try await fixture.base.waiting().isEmpty, "it was taken out of the inbox")
    let later = start.adding(seconds: 100)
    #expect(try await store.dueCompletions(of: nil, at: later, limit: 9).isEmpty)
    #expect(try await store.commit([fixture.offer(5, due, to: binding, attempt: 2)]) == [.originGone])
    let present = fixture
    let answers = try await concurrently(4) { _ in
        try await store.resumeUpdate(paused, by: present.key, audienceBytes: 0, at: later)
    }
    #expect(answers.filter { $0 == .resumed }.count == 1 && answers.filter { $0 == .notPaused }.count == 3)
    #expect(try await store.liveUpdates(of: fixture.app).map(\.id) == [due.id])
    let found = try await store.dueCompletions(of: nil, at: later, limit: 9)
    #expect(found.map(\.completion.key) == [fixture.name(due, binding)], "the other is paused still")
    let after = try #require(try await store.logMark(of: fixture.app))
    #expect(after.revision > before.revision, "the earlier progress in the log does not count")
    let nobody = AppSerial(fixture.app.rawValue + 99)
    #expect(try await store.logMark(of: nobody) == nil)
    #expect(try await store.audit(of: fixture.app, before: nil, limit: 1).map(\.action) == [.resumed])
    _ = try await store.withdrawUpdate(given, by: fixture.key, at: later)
    #expect(try await store.resumeUpdate(given, by: fixture.key, audienceBytes: 0, at: later) == .notPaused)
}

private func resumptionIsLimited(_ stores: any StoreMaker) async throws {
    var fixture = try await UpdateFixture(stores)
    let first = try await fixture.publish(fixture.request(1, fixture.definition(audience: "123456", ttl: 5000)))
    let second = try await fixture.publish(fixture.request(2, fixture.definition(audience: "1234", ttl: 5000)))
    guard let store = try await stores.restored(fixture.store, holdsUpdates: true) else { return }
    fixture = fixture.again(store)
    let limits = UpdateLimits(audienceBytes: 9)
    let third = try await fixture.publish(
        fixture.request(3, fixture.definition(audience: "12345", ttl: 5000), limits: limits))
    #expect(try await store.resumeUpdate(first, by: fixture.key, audienceBytes: 10, at: start) == .tooManyAudienceBytes)
    #expect(try await store.update(first.id, of: fixture.app)?.isPaused == true)
    #expect(try await store.resumeUpdate(second, by: fixture.key, audienceBytes: 9, at: start) == .resumed)
    #expect(try await store.liveUpdates(of: fixture.app).map(\.id) == [second.id, third.id])
}

private func wakingGoesOn(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    _ = try await fixture.publish(1)
    let first = try await fixture.publish(fixture.request(2, fixture.definition(wakes: true)))
    let second = try await fixture.publish(fixture.request(3, fixture.definition(wakes: true)))
    let other = try await fixture.anotherApp()
    let elsewhere = try await fixture.publish(fixture.request(4, fixture.definition(wakes: true), of: other))
    func waking(_ limit: Int = 9) async throws -> Set<UpdateID> {
        try await Set(store.wakingUpdates(limit: limit).map(\.update.id))
    }
    #expect(try await waking() == [first.id, elsewhere.id])
    #expect(try await waking(1).count == 1)
    let found = try #require(try await store.wakingUpdates(limit: 9).first { $0.update.app == fixture.app })
    let id = try StoreFixture.appID
    #expect(found.update == first && found.app == id && found.wokenTo == BindingSerial(0))
    let binding = try await fixture.bind()
    try await store.woke(first.serial, to: binding.serial)
    let places = try await store.wakingUpdates(limit: 9).filter { $0.update.id == first.id }.map(\.wokenTo)
    #expect(places == [binding.serial])
    try await store.woke(first.serial, to: nil)
    try await store.woke(first.serial, to: binding.serial)
    #expect(try await waking() == [second.id, elsewhere.id], "all devices were woken for the first")
    _ = try await store.withdrawUpdate(second, by: fixture.key, at: start)
    #expect(try await waking() == [elsewhere.id])
}

private func pollFinds(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let name = DeviceName.id(fixture.base.device.id, credential: fixture.base.device.credentialHash)
    let unknown = DeviceName.id(DeviceID(Bytes16(high: 8, low: 8)), credential: SecretHash(of: [8, 8]))
    #expect(try await store.poll(of: unknown, at: start) == nil)
    let silent = try #require(try await store.poll(of: name, at: start))
    #expect(silent.device == fixture.base.device && silent.binding == nil && silent.waiting?.isEmpty == true)
    let binding = try await fixture.bind()
    let (given, later) = (try await fixture.publish(1), try await fixture.publish(2))
    try await fixture.give(1, given, to: binding)
    _ = try await fixture.base.append(fixture.base.envelope(2, ttl: 60))
    let found = try #require(try await store.poll(of: name, at: start))
    #expect(found.binding == binding && !found.isAnyDue && !found.isEmpty)
    #expect(found.waiting?.map(\.id) == [1, 2].map { fixture.base.envelope($0).id })
    #expect(found.waiting?.map(\.kind) == [.update, .message])
    let expired = try #require(try await store.poll(of: name, at: start.adding(seconds: 60)))
    #expect(expired.waiting?.map(\.kind) == [.update])
    _ = try await store.withdrawUpdate(given, by: fixture.key, at: start)
    let moment = start.adding(seconds: 5)
    try await fixture.evaluate([later], binding, machine: CompletionMachine(.stored, attempt: 1, dueAt: moment))
    let early = try #require(try await store.poll(of: name, at: moment.adding(milliseconds: -1)))
    #expect(!early.isAnyDue && early.waiting?.map(\.kind) == [.message], "an update that ended is not delivered")
    let due = try #require(try await store.poll(of: name, at: moment))
    #expect(due.isAnyDue && due.binding?.cursor.place == later.serial)
    let more = (0..<Int64(PollVisit.mostWaiting)).map { fixture.base.envelope(10 + $0) }
    for envelope in more.dropLast() { _ = try await fixture.base.append(envelope) }
    let full = try #require(try await store.poll(of: name, at: start))
    #expect(full.waiting?.count == PollVisit.mostWaiting)
    _ = try await fixture.base.append(more[more.count - 1])
    let beyond = try #require(try await store.poll(of: name, at: start))
    #expect(beyond.waiting?.count == nil, "that is more than is read")
    try await fixture.sign(.signedIn(try #require(UserID("ada"))))
    let hers = try #require(try await store.poll(of: name, at: start))
    #expect(hers.binding == nil)
    _ = try await store.deleteDevice(fixture.device, at: start)
    #expect(try await store.poll(of: name, at: start) == nil)
}
