import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = UpdateFixture.start
private let everything = UpdateLimits(ended: 0, endedSeconds: 0)

extension StoreCase {
    static let updateEnding: [StoreCase] = [
        StoreCase("an update is withdrawn once", withdrawnOnce),
        StoreCase("an update expires at its moment", updateExpires),
        StoreCase("updates are listed from the latest on", updatesAreListed),
        StoreCase("content that expired is known until it is forgotten", expiredContentIsKnown),
        StoreCase("the mark of a log differs after each change of its live updates", markDiffers),
        StoreCase("the oldest of too many ended updates are forgotten", tooManyAreForgotten),
        StoreCase("ended updates are forgotten after their time", oldAreForgotten),
        StoreCase("completions of an ended update are found until they are final", unfinishedOfEndedAreFound),
        StoreCase("completions that were hidden from the search are found again", hiddenCompletionsAreFound),
        StoreCase("the audit is read from the latest on, and forgotten from the oldest on", auditIsKept),
    ]
}

/// Notes that nothing is left to do of ended updates.
private func finish(_ fixture: UpdateFixture) async throws {
    #expect(try await fixture.store.unfinishedOfEnded(limit: 100).isEmpty)
}

private func withdrawnOnce(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let update = try await fixture.publish(1)
    let later = start.adding(seconds: 9)
    let answers = try await concurrently(5) { _ in
        try await fixture.store.withdrawUpdate(update, by: fixture.key, at: later)
    }
    #expect(answers.filter(\.self).count == 1)
    let ended = try #require(try await fixture.store.update(update.id, of: fixture.app))
    #expect(ended.status == .withdrawn && ended.statusAt == later && ended.body == update.body)
    #expect(try await fixture.store.liveUpdates(of: fixture.app).isEmpty)
    let binding = try await fixture.bind()
    #expect(try await fixture.store.commit([fixture.offer(1, update, to: binding)]) == [.originGone])
    let audit = try await fixture.store.audit(of: fixture.app, before: nil, limit: 9)
    #expect(audit.map(\.action) == [.withdrawn, .published] && audit.map(\.at) == [later, start])
    #expect(audit.map(\.update) == [update.id, update.id] && audit.map(\.key) == [fixture.key, fixture.key])
}

private func updateExpires(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let updates = [
        try await fixture.publish(1, ttl: 60), try await fixture.publish(2, ttl: 61), try await fixture.publish(3, ttl: 62),
    ]
    let end = start.adding(seconds: 60)
    #expect(try await store.endExpiredUpdates(at: end.adding(milliseconds: -1), limit: 9).isEmpty)
    let first = EndedUpdate(app: fixture.app, update: updates[0].serial)
    #expect(try await store.endExpiredUpdates(at: end, limit: 9) == [first])
    #expect(try await store.endExpiredUpdates(at: end, limit: 9).isEmpty)
    let ended = try #require(try await store.update(updates[0].id, of: fixture.app))
    #expect(ended.status == .expired && ended.statusAt == end)
    let late = start.adding(seconds: 99)
    #expect(try await store.endExpiredUpdates(at: late, limit: 1).map(\.update) == [updates[1].serial])
    #expect(try await store.endExpiredUpdates(at: late, limit: 9).map(\.update) == [updates[2].serial])
    #expect(try await !store.withdrawUpdate(updates[2], by: fixture.key, at: late))
    #expect(try await fixture.status(updates[2]) == .expired)
}

private func updatesAreListed(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    var all: [Update] = []
    for number in UInt64(1)...4 { all.append(try await fixture.publish(number)) }
    _ = try await fixture.publish(fixture.request(9, fixture.definition(), of: fixture.anotherApp()))
    _ = try await fixture.store.withdrawUpdate(all[1], by: fixture.key, at: start)
    func found(_ filter: UpdateFilter, before: Int? = nil, limit: Int = 9) async throws -> [UpdateID] {
        try await fixture.store.updates(
            of: fixture.app, filter, before: before.map { all[$0].serial }, limit: limit
        ).map(\.id)
    }
    #expect(try await found(.all) == all.reversed().map(\.id))
    #expect(try await found(.all, limit: 2) == [all[3].id, all[2].id])
    #expect(try await found(.all, before: 2, limit: 2) == [all[1].id, all[0].id])
    #expect(try await found(.live) == [all[3].id, all[2].id, all[0].id])
    #expect(try await found(.paused).isEmpty)
}

private func expiredContentIsKnown(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let (store, app) = (fixture.store, fixture.app)
    #expect(try await store.lastExpiredContent(of: app) == UpdateSerial(0))
    #expect(try await store.expiredContent(of: app, after: UpdateSerial(0), limit: 9) == [])
    var content: [Update] = []
    for number in UInt64(1)...3 { content.append(try await fixture.publish(number, .content, ttl: 60)) }
    let withdrawn = try await fixture.publish(4, .content)
    _ = try await store.withdrawUpdate(withdrawn, by: fixture.key, at: start)
    _ = try await fixture.publish(5, .popup, ttl: 60)
    #expect(try await store.endExpiredUpdates(at: start.adding(seconds: 60), limit: 9).count == 4)
    #expect(try await store.lastExpiredContent(of: app) == content[2].serial)
    func ids(after place: UpdateSerial, limit: Int) async throws -> [UpdateID]? {
        try await store.expiredContent(of: app, after: place, limit: limit)?.map(\.id)
    }
    #expect(try await ids(after: UpdateSerial(0), limit: 3) == content.map(\.id))
    #expect(try await ids(after: UpdateSerial(0), limit: 2) == nil, "that is more than the limit")
    #expect(try await ids(after: content[0].serial, limit: 2) == content.dropFirst().map(\.id))
    let other = try await fixture.anotherApp()
    #expect(try await store.lastExpiredContent(of: other) == UpdateSerial(0))
    try await finish(fixture)
    // The first is forgotten: earlier ones may have been forgotten as well.
    #expect(try await !store.forgetUpdates(UpdateLimits(ended: 4), by: nil, limit: 9))
    #expect(try await store.forgetUpdates(UpdateLimits(ended: 4), by: nil, limit: 9))
    #expect(try await ids(after: UpdateSerial(0), limit: 9) == nil)
    #expect(try await ids(after: content[0].serial, limit: 9) == content.dropFirst().map(\.id))
    while try await !store.forgetUpdates(everything, by: nil, limit: 9) {}
    #expect(try await store.lastExpiredContent(of: app) == content[2].serial, "it stays known that there was some")
    #expect(try await ids(after: content[2].serial, limit: 9) == [])
}

private func markDiffers(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let (store, app) = (fixture.store, fixture.app)
    var marks: [UpdateLogMark] = []
    func note() async throws {
        let mark = try await store.logMark(of: app)
        marks.append(try #require(mark))
    }
    try await note()
    let first = try await fixture.publish(1, .content, ttl: 60)
    try await note()
    let second = try await fixture.publish(2)
    try await note()
    _ = try await store.withdrawUpdate(second, by: fixture.key, at: start)
    try await note()
    #expect(try await store.endExpiredUpdates(at: start.adding(seconds: 60), limit: 9).count == 1)
    try await note()
    for (place, mark) in marks.enumerated() { #expect(!marks[..<place].contains(mark), "\(place)") }
    #expect(marks.map(\.live) == [0, 1, 2, 1, 0])
    #expect(marks.map(\.last) == [UpdateSerial(0), first.serial, second.serial, second.serial, second.serial])
    #expect(Set(marks.map(\.revision)).count == 1, "only pauses change it")
    let other = try await fixture.anotherApp()
    _ = try await fixture.publish(fixture.request(3, fixture.definition(), of: other))
    #expect(try await store.logMark(of: app) == marks.last)
}

private func tooManyAreForgotten(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let binding = try await fixture.bind()
    var all: [Update] = []
    for number in UInt64(1)...4 { all.append(try await fixture.publish(number)) }
    let live = try await fixture.publish(5)
    try await fixture.evaluate([all[0]], binding, machine: CompletionMachine(.done, attempt: 1))
    try await fixture.evaluate([all[1]], binding, machine: CompletionMachine(.stored, attempt: 1))
    for update in all { _ = try await store.withdrawUpdate(update, by: fixture.key, at: start) }
    let limits = UpdateLimits(ended: 1)
    #expect(try await store.unfinishedOfEnded(limit: 9).map(\.completion.key) == [fixture.name(all[1], binding)])
    while try await !store.forgetUpdates(limits, by: nil, limit: 1) {}
    #expect(try await store.update(all[0].id, of: fixture.app) == nil)
    #expect(try await fixture.completion(all[0], binding) == nil)
    #expect(try await fixture.status(all[1]) == .withdrawn, "something of it is left to do")
    try await store.endCompletions([(fixture.name(all[1], binding), .withdrawn)], at: start)
    try await finish(fixture)
    while try await !store.forgetUpdates(limits, by: nil, limit: 1) {}
    let left = try await store.updates(of: fixture.app, .all, before: nil, limit: 9)
    #expect(left.map(\.id) == [live.id, all[3].id])
    #expect(try await store.forgetUpdates(limits, by: nil, limit: 1), "nothing is left to forget")
}

private func oldAreForgotten(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let (first, second) = (try await fixture.publish(1), try await fixture.publish(2))
    _ = try await store.withdrawUpdate(first, by: fixture.key, at: start)
    _ = try await store.withdrawUpdate(second, by: fixture.key, at: start.adding(seconds: 1))
    try await finish(fixture)
    let limits = UpdateLimits(endedSeconds: 100)
    func forget(_ milliseconds: Int64) async throws {
        let now = start.adding(milliseconds: milliseconds)
        while try await !store.forgetUpdates(limits, by: .uninterrupted(at: now), limit: 9) {}
    }
    try await forget(99_999)
    #expect(try await fixture.status(first) == .withdrawn)
    try await forget(100_000)
    #expect(try await fixture.status(first) == nil)
    #expect(try await fixture.status(second) == .withdrawn)
    // A server that was not in service for so long forgets nothing.
    let stopped = RetentionTime(now: start.adding(seconds: 10_000), served: 0)
    #expect(try await store.forgetUpdates(limits, by: stopped, limit: 9))
    #expect(try await fixture.status(second) == .withdrawn)
}

private func unfinishedOfEndedAreFound(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let binding = try await fixture.bind()
    let content = try await fixture.publish(1, .content, ttl: 60)
    let (popup, live) = (try await fixture.publish(2), try await fixture.publish(3))
    try await fixture.give(1, content, to: binding)
    try await fixture.give(2, live, to: binding)
    try await fixture.evaluate([popup], binding, machine: CompletionMachine(.stored, attempt: 1))
    #expect(try await store.unfinishedOfEnded(limit: 9).isEmpty)
    _ = try await store.endExpiredUpdates(at: start.adding(seconds: 60), limit: 9)
    _ = try await store.withdrawUpdate(popup, by: fixture.key, at: start)
    #expect(try await store.unfinishedOfEnded(limit: 1).count == 1)
    let found = try await store.unfinishedOfEnded(limit: 9)
    #expect(found.map(\.completion.key) == [content, popup].map { fixture.name($0, binding) })
    #expect(found.map(\.device) == [fixture.device, fixture.device] && found.map(\.app) == [fixture.app, fixture.app])
    #expect(found.map(\.origin) == [content.origin, popup.origin] && found.map(\.status) == [.expired, .withdrawn])
    #expect(found.map(\.isContent) == [true, false])
    #expect(found.map(\.envelope) == [fixture.base.envelope(1).id, nil])
    let ends = [(fixture.name(content, binding), CompletionMachine.State.expired)]
    try await store.endCompletions(ends, at: start.adding(seconds: 70))
    try await store.endCompletions([(fixture.name(content, binding), .withdrawn)], at: start.adding(seconds: 80))
    let ended = try #require(try await fixture.completion(content, binding))
    #expect(ended.machine.state == .expired && ended.changedAt == start.adding(seconds: 70), "it ends once")
    #expect(try await store.unfinishedOfEnded(limit: 9).map(\.completion.key) == [fixture.name(popup, binding)])
}

private func hiddenCompletionsAreFound(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let binding = try await fixture.bind()
    var updates: [Update] = []
    for number in UInt64(1)...5 { updates.append(try await fixture.publish(number)) }
    try await fixture.evaluate(Array(updates[1...3]), binding, machine: CompletionMachine(.stored, attempt: 1))
    for update in updates[..<3] { _ = try await store.withdrawUpdate(update, by: fixture.key, at: start) }
    for update in updates[..<3] { try await stores.hideUnfinished(of: update.serial, in: store) }
    #expect(try await store.unfinishedOfEnded(limit: 9).isEmpty)
    var (place, parts) = (UpdateSerial?.some(UpdateSerial(0)), 0)
    while let after = place {
        place = try await store.findUnfinishedOfEnded(after: after, limit: 1)
        if let place { #expect(place > after) }
        parts += 1
    }
    #expect(parts > 1)
    let found = try await store.unfinishedOfEnded(limit: 9).map(\.completion.key)
    #expect(found == updates[1...2].map { fixture.name($0, binding) }, "the fourth is live")
}

private func auditIsKept(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let (store, app) = (fixture.store, fixture.app)
    for number in UInt64(1)...6 { _ = try await fixture.publish(number, at: start.adding(seconds: Int64(number))) }
    _ = try await fixture.publish(fixture.request(9, fixture.definition(), of: fixture.anotherApp()))
    func ids() async throws -> [UpdateID] { try await store.audit(of: app, before: nil, limit: 99).map(\.update) }
    let all = [6, 5, 4, 3, 2, 1].map { fixture.id($0) }
    #expect(try await ids() == all)
    let first = try await store.audit(of: app, before: nil, limit: 2)
    let rest = try await store.audit(of: app, before: first[1].number, limit: 2)
    #expect(rest.map(\.update) == [fixture.id(4), fixture.id(3)] && first[0].number > first[1].number)
    #expect(first.map(\.count) == [nil, nil])
    try await store.forgetAudit(before: start.adding(milliseconds: 999), beyond: 99, limit: 9)
    #expect(try await ids().count == 6)
    try await store.forgetAudit(before: start.adding(seconds: 2), beyond: 99, limit: 1)
    #expect(try await ids().count == 5)
    try await store.forgetAudit(before: start.adding(seconds: 2), beyond: 99, limit: 9)
    #expect(try await ids() == Array(all.dropLast(2)))
    for _ in 0..<4 { try await store.forgetAudit(before: start, beyond: 2, limit: 9) }
    #expect(try await ids() == Array(all.prefix(2)))
}
