import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = UpdateFixture.start

extension StoreCase {
    static let completions: [StoreCase] = [
        StoreCase("completions are written for the revision of a binding, and once", completionsAreHeld),
        StoreCase("of concurrent offers of an update one counts", updateIsOfferedOnce),
        StoreCase("offers and ends of one commit follow each other", offersOfOneCommitAreJudgedInOrder),
        StoreCase("an offer and the end of one completion in one commit see each other", offerAndEndSeeEachOther),
        StoreCase("an update that a device received is stored until it reports", updateIsReported),
        StoreCase("a report has a result for each of its results, and a late one changes nothing", reportsAreAnswered),
        StoreCase("the positions that a device confirmed never go back by a report", receivedPlacesRise),
        StoreCase("the completions of an update are counted and listed by state", completionsAreListed),
        StoreCase("a binding is read with the last completions of live updates after its place", standingIsRead),
        StoreCase("an offer that counts stores the progress in the log", offerNotesThePlace),
        StoreCase("an offer stores the position beside a refused offer of its completion", placeIsNotedBesideAnother),
        StoreCase("an offer that does not fit stores no position", offerWithoutRoomNotesNoPlace),
        StoreCase("updates of one order key are delivered one after the other", orderKeyIsKept),
        StoreCase("content that expired is known to a binding up to its place", missedContentIsKnown),
    ]
}

private func completionsAreHeld(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let binding = try await fixture.bind()
    let (first, second, ended) = (
        try await fixture.publish(1), try await fixture.publish(2), try await fixture.publish(3)
    )
    _ = try await store.withdrawUpdate(ended, by: fixture.key, at: start)
    #expect(try await fixture.evaluate([first, ended], binding, machine: CompletionMachine(.unsupported)))
    #expect(try await fixture.state(first, binding) == .unsupported)
    #expect(try await fixture.completion(ended, binding) == nil, "its update does not live")
    #expect(try await store.presentBinding(of: fixture.device)?.cursor == AudienceCursor(ended.serial, rules: 1))
    #expect(try await fixture.evaluate([first, second], binding))
    #expect(try await fixture.state(first, binding) == .unsupported, "it was there")
    #expect(try await fixture.state(second, binding) == .waiting)
    #expect(try await store.presentBinding(of: fixture.device)?.cursor == AudienceCursor(ended.serial, rules: 1))
    let other = AudienceCursor(first.serial, rules: 2)
    #expect(
        try await store.evaluated(
            binding.serial, revision: binding.revision, to: other, isFull: false, adding: [], at: start))
    #expect(try await store.presentBinding(of: fixture.device)?.cursor == other, "other rules, another place")
    let third = try await fixture.publish(4)
    _ = try #require(try await store.change(binding, hasOtherKinds: false, at: start))
    #expect(try await !fixture.evaluate([third], binding), "the binding has another revision")
    #expect(try await fixture.completion(third, binding) == nil)
    // Of a completion as it was written everything is kept.
    let now = try await fixture.bind()
    let machine = CompletionMachine(
        .failed, attempt: 3, isReceived: true, failures: 2, firstFailedAt: start, dueAt: start.adding(seconds: 9),
        reason: "no room")
    try await fixture.evaluate([third], now, machine: machine)
    #expect(
        try await fixture.completion(third, now)
            == Completion(key: fixture.name(third, now), machine: machine, changedAt: start))
}

private func updateIsOfferedOnce(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let binding = try await fixture.bind()
    let update = try await fixture.publish(1)
    let results = try await concurrently(6) { number in
        try await fixture.store.commit([fixture.offer(Int64(number), update, to: binding)])
    }
    #expect(results.filter { $0 == [.stored(replaced: nil)] }.count == 1)
    #expect(results.filter { $0 == [.originGone] }.count == 5)
    let waiting = try await fixture.base.waiting()
    #expect(waiting.count == 1)
    #expect(waiting.first?.kind == .update(.init(body: update.body, shared: update.content, entry: 1, attempt: 1)))
    let completion = try #require(try await fixture.completion(update, binding))
    #expect(completion.machine == CompletionMachine(.waiting, attempt: 1) && completion.key == fixture.name(update, binding))
    let names = try await fixture.store.envelopes(of: [
        fixture.name(update, binding), fixture.name(update, binding, entry: 2),
    ])
    #expect(names == waiting.map(\.id))
    var stale = binding
    stale.revision -= 1
    let other = try await fixture.publish(2)
    #expect(try await fixture.store.commit([fixture.offer(20, other, to: stale)]) == [.originGone])
    let end = start.adding(seconds: 1000)
    #expect(
        try await fixture.store.commit([fixture.offer(21, other, to: binding, at: end)]) == [.originGone], "its time is over"
    )
}

private func offersOfOneCommitAreJudgedInOrder(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let binding = try await fixture.bind()
    var updates: [Update] = []
    for number in UInt64(1)...5 {
        let definition = fixture.definition(orderKey: number < 3 ? "k" : nil)
        updates.append(try await fixture.publish(fixture.request(number, definition)))
    }
    let stored = InboxResult.stored(replaced: nil)
    let given = try await store.commit([
        fixture.offer(1, updates[0], to: binding), fixture.offer(2, updates[2], to: binding),
    ])
    #expect(given == [stored, stored])
    try await fixture.evaluate([updates[1]], binding)
    let twice = try await store.commit([
        fixture.offer(3, updates[3], to: binding), fixture.offer(4, updates[3], to: binding),
    ])
    #expect(twice == [stored, .originGone])
    #expect(try await store.withdrawUpdate(updates[0], by: fixture.key, at: start))
    let retraction = Envelope(
        id: fixture.base.envelope(5).id, device: binding.device, app: fixture.app, origin: updates[0].origin,
        kind: .retraction(entry: 1), acceptedAt: start, expiresAt: start.adding(seconds: 60))
    let end = Effect.updateRetracted(fixture.name(updates[0], binding), as: .withdrawn, at: start)
    let ended = try await store.commit([
        .append(retraction, AppendRules(effects: [end])), fixture.offer(6, updates[4], to: binding),
    ])
    #expect(ended == [stored, stored])
    let machines = try await store.completions(of: binding.serial, updates.map(\.serial)).map(\.machine)
    let waiting = CompletionMachine(.waiting, attempt: 1)
    #expect(
        machines == [
            CompletionMachine(.withdrawn, attempt: 1), CompletionMachine(dueAt: start), waiting, waiting, waiting,
        ])
}

private func offerAndEndSeeEachOther(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let binding = try await fixture.bind()
    let updates = [
        try await fixture.publish(fixture.request(1, fixture.definition(orderKey: "a"))),
        try await fixture.publish(fixture.request(2, fixture.definition(orderKey: "b"))),
    ]
    try await fixture.evaluate(updates, binding)
    let due = try await store.completions(of: binding.serial, updates.map(\.serial)).map(\.machine)
    #expect(due == [CompletionMachine(dueAt: start), CompletionMachine(dueAt: start)])
    func retraction(_ position: Int64, _ update: Update) -> InboxOperation {
        let envelope = Envelope(
            id: fixture.base.envelope(position).id, device: binding.device, app: fixture.app, origin: update.origin,
            kind: .retraction(entry: 1), acceptedAt: start, expiresAt: start.adding(seconds: 60))
        let end = Effect.updateRetracted(fixture.name(update, binding), as: .withdrawn, at: start)
        return .append(envelope, AppendRules(effects: [end]))
    }
    let stored = InboxResult.stored(replaced: nil)
    let endFirst = try await store.commit([
        retraction(1, updates[0]), fixture.offer(2, updates[0], to: binding, isAgain: true),
    ])
    #expect(endFirst == [stored, .originGone])
    let offerFirst = try await store.commit([
        fixture.offer(3, updates[1], to: binding, isAgain: true), retraction(4, updates[1]),
    ])
    #expect(offerFirst == [stored, stored])
    let machines = try await store.completions(of: binding.serial, updates.map(\.serial)).map(\.machine)
    #expect(machines == [CompletionMachine(.withdrawn), CompletionMachine(.withdrawn, attempt: 1)])
}

private func updateIsReported(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let binding = try await fixture.bind()
    let update = try await fixture.publish(1)
    try await fixture.give(1, update, to: binding)
    try await fixture.receive(1, of: binding)
    let stored = try #require(try await fixture.completion(update, binding)).machine
    let silence = start.adding(seconds: CompletionMachine.silenceSeconds)
    #expect(stored.state == .stored && stored.isReceived && stored.dueAt == silence)
    #expect(try await store.envelopes(of: [fixture.name(update, binding)]).isEmpty)
    #expect(try await fixture.report(.deferred(seconds: 5, reason: "later"), of: update, binding) == .taken(nil))
    let deferred = try #require(try await fixture.completion(update, binding)).machine
    #expect(deferred.state == .deferred && deferred.reason == "later" && deferred.dueAt == start.adding(seconds: 5))
    let again = start.adding(seconds: 5)
    #expect(try await fixture.store.commit([fixture.offer(2, update, to: binding, attempt: 3, at: again)]) == [.originGone])
    try await fixture.give(3, update, to: binding, attempt: 2, at: again)
    let envelope = fixture.base.envelope(3).id
    #expect(try await fixture.report(.done, of: update, binding, attempt: 2) == .taken(envelope))
    #expect(try await fixture.state(update, binding) == .done)
    #expect(try await fixture.base.waiting().map(\.position) == [3], "a report removes the envelope")
    #expect(try await fixture.report(.done, of: update, binding) == .late)
    #expect(try await store.unfinished(of: binding.serial).isEmpty)
}

private func reportsAreAnswered(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let binding = try await fixture.bind()
    let (first, second) = (try await fixture.publish(1), try await fixture.publish(2))
    let unknown = try await fixture.publish(3)
    for (position, update) in [first, second].enumerated() {
        try await fixture.give(Int64(position + 1), update, to: binding)
        try await fixture.receive(Int64(position + 1), of: binding)
    }
    func result(_ update: Update, _ result: UpdateResult, entry: Int = 1) -> ReportedResult {
        ReportedResult(update: update.id, entry: entry, attempt: 1, result: result)
    }
    let failure = UpdateResult.failed(isPermanent: false, reason: "why")
    let later = start.adding(seconds: 9)
    let report = try await store.report(
        [
            result(first, .done), result(unknown, .done), result(second, failure), result(first, failure),
            result(second, .done, entry: 2),
        ],
        receivedTo: nil, of: binding.serial, at: later)
    #expect(report.answers == [.taken(nil), .unknown, .taken(nil), .late, .unknown])
    #expect(report.isAnyDue, "the first failure is delivered again at once")
    let failed = try #require(try await fixture.completion(second, binding))
    #expect(failed.machine.state == .failed && failed.machine.failures == 1 && failed.changedAt == later)
    #expect(failed.machine.firstFailedAt == later && failed.machine.reason == "why")
    let answers = try await concurrently(5) { _ in
        try await fixture.report(.failed(isPermanent: true, reason: nil), of: second, binding)
    }
    #expect(answers == Array(repeating: .late, count: 5), "it is one failure until it is delivered again")
    let nothing = try await store.report([], receivedTo: nil, of: binding.serial, at: start)
    #expect(nothing.answers.isEmpty && !nothing.isAnyDue)
    let other = try await fixture.bind("main", fixture.anotherDevice().serial)
    #expect(try await fixture.report(.done, of: second, other) == .unknown, "it is another's")
}

private func receivedPlacesRise(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let binding = try await fixture.bind()
    func receive(_ all: Int64, _ updates: Int64) async throws -> ReceivedTo? {
        _ = try await store.report(
            [], receivedTo: ReceivedTo(all: all, updates: updates), of: binding.serial, at: start)
        return try await store.presentBinding(of: fixture.device)?.receivedTo
    }
    #expect(try await receive(5, 3) == ReceivedTo(all: 5, updates: 3))
    #expect(try await receive(4, 7) == ReceivedTo(all: 5, updates: 7))
    #expect(try await receive(6, 1) == ReceivedTo(all: 6, updates: 7))
    // A device that lost its data begins anew.
    let updates = [try await fixture.publish(1), try await fixture.publish(2), try await fixture.publish(3)]
    try await fixture.give(1, updates[0], to: binding)
    try await fixture.receive(1, of: binding)
    try await fixture.give(2, updates[1], to: binding)
    try await fixture.evaluate([updates[2]], binding)
    let later = start.adding(seconds: 9)
    try await store.offerAgain(to: binding.serial, needsResync: true, at: later)
    let present = try #require(try await store.presentBinding(of: fixture.device))
    #expect(present.receivedTo == ReceivedTo(all: 0, updates: 0) && present.needsResync)
    let due = try await store.dueCompletions(of: binding.serial, at: later, limit: 9)
    #expect(due.map(\.completion.key) == [fixture.name(updates[0], binding)], "the others it never received")
    try await store.offerAgain(to: binding.serial, needsResync: false, at: later)
    #expect(try await store.presentBinding(of: fixture.device)?.needsResync == true)
}

private func completionsAreListed(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let (update, other) = (try await fixture.publish(1), try await fixture.publish(2))
    var bindings: [UpdateBinding] = []
    var devices: [DeviceID] = []
    for number in UInt8(1)...4 {
        let device = try await fixture.anotherDevice(number)
        let binding = try await fixture.bind("p\(number)", device.serial)
        let state: CompletionMachine.State = number % 2 == 0 ? .done : .stored
        try await fixture.evaluate([update], binding, machine: CompletionMachine(state, attempt: 1))
        bindings.append(binding)
        devices.append(device.id)
    }
    try await fixture.evaluate([other], bindings[0])
    #expect(try await store.counts(of: update.serial) == [.stored: 2, .done: 2])
    #expect(try await store.counts(of: other.serial) == [.waiting: 1])
    let all = try await store.completions(of: update.serial, in: nil, after: nil, limit: 9)
    #expect(Set(all.map(\.device)) == Set(devices) && all.count == 4)
    for one in all {
        let place = try #require(devices.firstIndex(of: one.device))
        #expect(one.profile == "p\(place + 1)" && one.user == nil)
        #expect(one.completion.key == fixture.name(update, bindings[place]))
    }
    for state in [nil, CompletionMachine.State.done] {
        let whole = try await store.completions(of: update.serial, in: state, after: nil, limit: 9)
        #expect(whole.count == (state == nil ? 4 : 2))
        var (parts, place): ([CompletionKey], CompletionKey?) = ([], nil)
        while true {
            let part = try await store.completions(of: update.serial, in: state, after: place, limit: 1)
            guard let last = part.last else { break }
            #expect(part.count == 1)
            parts.append(last.completion.key)
            place = last.completion.key
        }
        #expect(parts == whole.map(\.completion.key))
    }
    #expect(try await store.completions(of: update.serial, in: .parked, after: nil, limit: 9).isEmpty)
    let mine = try await store.completions(of: update.serial, at: devices[2])
    #expect(mine.map(\.key) == [fixture.name(update, bindings[2])])
    #expect(try await store.completions(of: other.serial, at: devices[2]).isEmpty)
}

private func standingIsRead(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let binding = try await fixture.bind()
    var updates: [Update] = []
    for number in UInt64(1)...4 { updates.append(try await fixture.publish(number)) }
    try await fixture.evaluate(updates, binding, machine: CompletionMachine(.done, attempt: 1))
    let entries = [2, 3].map {
        Completion(
            key: fixture.name(updates[1], binding, entry: $0), machine: CompletionMachine(.stored, attempt: 1),
            changedAt: start)
    }
    let place = AudienceCursor(updates[3].serial, rules: 1)
    #expect(
        try await store.evaluated(
            binding.serial, revision: binding.revision, to: place, isFull: false, adding: entries, at: start))
    _ = try await store.withdrawUpdate(updates[2], by: fixture.key, at: start)
    let all = [(updates[0], 1), (updates[1], 3), (updates[3], 1)].map { fixture.name($0.0, binding, entry: $0.1) }
    func standing(from first: UpdateSerial = UpdateSerial(0), under rules: Int64) async throws -> [CompletionKey]? {
        try await store.bindingState(of: binding.serial, from: first, under: rules)?.completions.map(\.key)
    }
    #expect(try await standing(under: 2) == all, "under other rules the binding has no place")
    #expect(try await standing(from: updates[1].serial, under: 2) == Array(all.dropFirst()))
    #expect(try await standing(under: 1) == [])
    let present = try await store.presentBinding(of: fixture.device)
    #expect(try await store.bindingState(of: binding.serial, from: UpdateSerial(0), under: 1)?.binding == present)
    let back = AudienceCursor(updates[0].serial, rules: 2)
    #expect(
        try await store.evaluated(binding.serial, revision: binding.revision, to: back, isFull: false, adding: [], at: start)
    )
    #expect(try await standing(under: 2) == Array(all.dropFirst()), "the updates after the position")
    #expect(try await standing(from: updates[3].serial, under: 2) == Array(all.dropFirst(2)))
    let asked = [updates[2], updates[1]].map(\.serial)
    let found = try await store.completions(of: binding.serial, asked).map(\.key)
    #expect(found == [fixture.name(updates[2], binding), fixture.name(updates[1], binding, entry: 3)])
    #expect(try await store.unfinished(of: binding.serial).map(\.key.entry).sorted() == [2, 3])
    _ = try await fixture.bind("other")
    #expect(try await standing(under: 2) == nil, "the binding ended")
}

private func offerNotesThePlace(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let binding = try await fixture.bind()
    var updates: [Update] = []
    for number in UInt64(1)...3 { updates.append(try await fixture.publish(number)) }
    let places = updates.map { AudienceCursor($0.serial, rules: 1) }
    func offer(_ position: Int64, _ update: Int, _ binding: UpdateBinding, to place: Int?) -> InboxOperation {
        fixture.offer(position, updates[update], to: binding, cursor: place.map { places[$0] })
    }
    let stored = InboxResult.stored(replaced: nil)
    #expect(try await store.commit([offer(1, 0, binding, to: nil)]) == [stored])
    #expect(try await store.presentBinding(of: fixture.device)?.cursor == .nowhere)
    let both = [offer(2, 1, binding, to: 1), offer(3, 2, binding, to: 0)]
    #expect(try await store.commit(both) == [stored, stored])
    let evaluated = try #require(try await store.presentBinding(of: fixture.device))
    #expect(evaluated.cursor == places[1] && evaluated.seenTo == updates[1].serial, "the place does not go back")
    var other = binding
    other.revision += 1
    let late = try await fixture.publish(4)
    let vain = fixture.offer(5, late, to: other, cursor: places[2])
    #expect(try await store.commit([offer(4, 1, binding, to: 2), vain]) == [.originGone, .originGone])
    #expect(try await store.presentBinding(of: fixture.device) == evaluated)
}

private func placeIsNotedBesideAnother(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let binding = try await fixture.bind()
    for number in Int64(1)...4 {
        let update = try await fixture.publish(UInt64(number))
        let place = AudienceCursor(update.serial, rules: 1)
        let offer = fixture.offer(2 * number, update, to: binding, cursor: place)
        let vain = fixture.offer(2 * number + 1, update, to: binding, isAgain: true)
        let isFirst = number % 2 == 0
        let results = try await store.commit(isFirst ? [vain, offer] : [offer, vain])
        let stored = InboxResult.stored(replaced: nil)
        #expect(results == (isFirst ? [.originGone, stored] : [stored, .originGone]))
        #expect(try await store.presentBinding(of: fixture.device)?.cursor == place)
    }
}

private func offerWithoutRoomNotesNoPlace(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores, .init(envelopes: 1))
    let store = fixture.store
    let binding = try await fixture.bind()
    let (first, second) = (try await fixture.publish(1), try await fixture.publish(2))
    let place = AudienceCursor(second.serial, rules: 1)
    func offer(_ position: Int64) -> InboxOperation { fixture.offer(position, second, to: binding, cursor: place) }
    try await fixture.give(1, first, to: binding)
    let before = try #require(try await store.presentBinding(of: fixture.device))
    #expect(try await store.commit([offer(2)]) == [.full])
    #expect(try await store.presentBinding(of: fixture.device) == before)
    #expect(try await fixture.completion(second, binding) == nil)
    try await fixture.receive(1, of: binding)
    #expect(try await store.commit([offer(3)]) == [.stored(replaced: nil)])
    #expect(try await store.presentBinding(of: fixture.device)?.cursor == place)
}

private func orderKeyIsKept(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let binding = try await fixture.bind()
    var updates: [Update] = []
    for number in UInt64(1)...3 {
        updates.append(try await fixture.publish(fixture.request(number, fixture.definition(orderKey: "k"))))
    }
    try await fixture.give(1, updates[0], to: binding)
    try await fixture.evaluate(Array(updates[1...]), binding)
    func due() async throws -> [CompletionKey] {
        try await store.dueCompletions(of: binding.serial, at: start.adding(seconds: 20), limit: 9).map(\.completion.key)
    }
    #expect(try await due().isEmpty)
    try await fixture.report(.done, of: updates[0], binding, at: start.adding(seconds: 1))
    #expect(try await due() == [fixture.name(updates[1], binding)])
    try await store.endCompletions([(fixture.name(updates[1], binding), .withdrawn)], at: start.adding(seconds: 2))
    #expect(try await due() == [fixture.name(updates[2], binding)])
    // No completion is before one that is written when the others have ended.
    try await store.endCompletions([(fixture.name(updates[2], binding), .withdrawn)], at: start)
    let last = try await fixture.publish(fixture.request(9, fixture.definition(orderKey: "k")))
    try await fixture.evaluate([last], binding)
    #expect(try await due() == [fixture.name(last, binding)])
    // Of several that are written together the first delays the others.
    var together: [Update] = []
    for number in UInt64(10)...12 {
        together.append(try await fixture.publish(fixture.request(number, fixture.definition(orderKey: "l"))))
    }
    try await fixture.evaluate(together, binding)
    #expect(try await due() == [last, together[0]].map { fixture.name($0, binding) })
}

private func missedContentIsKnown(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let binding = try await fixture.bind()
    func seenTo() async throws -> UpdateSerial? { try await store.presentBinding(of: fixture.device)?.seenTo }
    let (first, second) = (try await fixture.publish(1), try await fixture.publish(2))
    try await fixture.evaluate([first, second], binding)
    #expect(try await seenTo() == second.serial)
    try await fixture.evaluate([first], binding, isFull: true)
    #expect(try await seenTo() == first.serial, "later updates did not fit")
    try await store.saw(binding.serial, to: second.serial)
    #expect(try await seenTo() == second.serial)
    try await store.saw(binding.serial, to: first.serial)
    #expect(try await seenTo() == second.serial, "it never goes back")
    _ = try await fixture.publish(3, .content, ttl: 60)
    _ = try await store.endExpiredUpdates(at: start.adding(seconds: 60), limit: 9)
    let later = try await fixture.publish(4)
    try await fixture.evaluate([later], binding)
    #expect(try await seenTo() == second.serial, "content expired behind it")
}
