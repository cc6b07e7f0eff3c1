import CarillonBasics
import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = UpdateFixture.start

extension StoreCase {
    static let bindings: [StoreCase] = [
        StoreCase("concurrent requests of a device and a profile begin one binding", bindingBeginsOnce),
        StoreCase("another profile ends the binding of a device, which can return to it", profileChanges),
        StoreCase("another user ends the binding of a device", userChanges),
        StoreCase("canonically equivalent texts are different profiles and users", bindingsAreComparedByBytes),
        StoreCase("of concurrent changes of a binding one is written", bindingIsChangedOnce),
        StoreCase("a kind that a binding does not process any more leaves its inbox", kindsAreFollowed),
        StoreCase("the bindings of an app are listed in order", bindingsAreListed),
        StoreCase("locations are forgotten by their moment, and nothing else", locationsAreForgotten),
        StoreCase("the unfinished completions of an ended binding are released in steps", bindingIsReleased),
        StoreCase("a binding that began again is not released", bindingThatBeganAgainIsKept),
        StoreCase("content that expired while a binding was ended must be fetched", contentIsMissed),
        StoreCase("content of an audience that a device had left is not missed", leftContentIsNotMissed),
        StoreCase("a device has a limited number of bindings", bindingsAreLimited),
    ]
}

private func bindingBeginsOnce(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    #expect(try await store.presentBinding(of: fixture.device) == nil)
    let update = try await fixture.publish(1)
    let all = try await concurrently(8) { _ in try await fixture.bind() }
    let binding = try #require(all.first)
    #expect(all == Array(repeating: binding, count: 8))
    #expect(binding.device == fixture.device && binding.profile == "main" && binding.user == nil)
    #expect(binding.values == ParameterValues() && binding.kinds.isEmpty && binding.parametersRevision == nil)
    #expect(binding.cursor == .nowhere && binding.seenTo == update.serial && !binding.needsResync)
    #expect(binding.receivedTo == ReceivedTo(all: 0, updates: 0))
    #expect(try await store.presentBinding(of: fixture.device) == binding)
    #expect(try await store.bindingCount(of: fixture.app) == 1)
    let nobody = DeviceSerial(fixture.device.rawValue + 99)
    #expect(try await store.binding(of: nobody, profile: "main", at: start) == nil)
    #expect(try await store.presentBinding(of: nobody) == nil)
    _ = try await store.deleteDevice(fixture.device, at: start)
    #expect(try await store.binding(of: fixture.device, profile: "main", at: start) == nil)
    #expect(try await store.presentBinding(of: fixture.device) == nil)
}

private func profileChanges(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let first = try await fixture.bind("one")
    let update = try await fixture.publish(1)
    let second = try await fixture.bind("other")
    #expect(second.serial != first.serial)
    #expect(try await store.presentBinding(of: fixture.device) == second)
    #expect(try await store.bindingCount(of: fixture.app) == 1, "a device has one at a time")
    #expect(try await store.commit([fixture.offer(1, update, to: first)]) == [.originGone], "it ended")
    #expect(try await !fixture.evaluate([update], first))
    let again = try await fixture.bind("one")
    #expect(again.serial == first.serial && again.revision > first.revision)
    #expect(again.parametersRevision == nil && again.cursor.place == UpdateSerial(0))
    #expect(try await store.presentBinding(of: fixture.device) == again)
    #expect(try await fixture.evaluate([update], again))
}

private func userChanges(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let ada = try #require(UserID("ada"))
    let own = try await fixture.bind()
    try await fixture.sign(.signedIn(ada))
    #expect(try await store.presentBinding(of: fixture.device) == nil)
    let hers = try await fixture.bind()
    #expect(hers.serial != own.serial && hers.user == ada)
    try await fixture.sign(.signedOut)
    let again = try await fixture.bind()
    #expect(again.serial == own.serial && again.revision > own.revision)
    try await fixture.sign(.signedIn(ada))
    #expect(try await fixture.bind().serial == hers.serial)
}

private func bindingsAreComparedByBytes(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let (composed, decomposed) = ("\u{e9}", "e\u{301}")
    let first = try await fixture.bind(composed)
    let main = try await fixture.bind()
    let second = try await fixture.bind(decomposed)
    #expect(second.serial != first.serial && second.profile.utf8.count == decomposed.utf8.count)
    #expect(try await fixture.bind(composed).serial == first.serial)
    #expect(try await fixture.bind(decomposed).serial == second.serial)
    var bindings: [BindingSerial] = []
    for text in [composed, decomposed, composed] {
        try await fixture.sign(.signedIn(try #require(UserID(text))))
        bindings.append(try await fixture.bind().serial)
        try await fixture.sign(.signedOut)
    }
    #expect(Set(bindings + [main.serial]).count == 3 && bindings[0] == bindings[2])
}

private func values(_ members: [(String, JSONValue)]) -> ParameterValues {
    ParameterValues(stored: JSONValue.object(members.map { .init(name: $0.0, value: $0.1) }).bytes)
}

private let vienna = JSONValue.object([
    .init(name: "latitude", value: .number(48.25)), .init(name: "longitude", value: .number(16.5)),
])

private func bindingIsChangedOnce(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let binding = try await fixture.bind()
    try await fixture.evaluate([try await fixture.publish(1)], binding)
    var changed = binding
    changed.values = values([("level", .integer(3)), ("place", vienna)])
    changed.parametersRevision = "r1"
    changed.locatedAt = start
    changed.kinds = ["popup", "com.example.note"]
    let wanted = changed
    let changes = try await concurrently(6) { _ in try await store.change(wanted, hasOtherKinds: true, at: start) }
    let made = changes.compactMap(\.self)
    #expect(made.count == 1)
    let present = try #require(try await store.presentBinding(of: fixture.device))
    #expect(made.first?.binding.revision == present.revision && present.revision > binding.revision)
    #expect(present.values == wanted.values && present.parametersRevision == "r1" && present.locatedAt == start)
    #expect(present.kinds == wanted.kinds && present.cursor.place == UpdateSerial(0))
    #expect(try await store.change(wanted, hasOtherKinds: false, at: start) == nil)
    var next = present
    next.values = ParameterValues()
    next.locatedAt = nil
    #expect(try await store.change(next, hasOtherKinds: false, at: start)?.takenOut == [])
    #expect(try await store.presentBinding(of: fixture.device)?.values == ParameterValues())
    let last = try #require(try await store.presentBinding(of: fixture.device))
    _ = try await fixture.bind("other")
    #expect(try await store.change(last, hasOtherKinds: false, at: start) == nil, "it ended")
}

private func kindsAreFollowed(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    var binding = try await fixture.bind()
    binding.kinds = ["popup", "definitions"]
    binding = try #require(try await store.change(binding, hasOtherKinds: true, at: start)).binding
    let (popup, other) = (try await fixture.publish(1, .popup), try await fixture.publish(2, .definitions))
    try await fixture.give(1, popup, to: binding)
    try await fixture.give(2, other, to: binding)
    binding.kinds = ["definitions"]
    let less = try #require(try await store.change(binding, hasOtherKinds: true, at: start))
    #expect(less.takenOut == [fixture.base.envelope(1).id])
    #expect(try await fixture.base.waiting().map(\.position) == [2])
    #expect(try await fixture.state(popup, binding) == .unsupported)
    #expect(try await fixture.state(other, binding) == .waiting)
    binding = less.binding
    binding.kinds = ["definitions", "popup"]
    let later = start.adding(seconds: 5)
    let more = try #require(try await store.change(binding, hasOtherKinds: true, at: later))
    #expect(more.takenOut.isEmpty)
    let due = try await store.dueCompletions(of: binding.serial, at: later, limit: 9)
    #expect(due.map(\.completion.key) == [fixture.name(popup, binding)])
    #expect(due.first?.completion.machine.state == .waiting && due.first?.completion.machine.dueAt == later)
}

private func bindingsAreListed(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let (silent, pushed) = (try await fixture.anotherDevice(1), try await fixture.anotherDevice(2, token: "aa01"))
    let all = [
        try await fixture.bind(), try await fixture.bind("main", silent.serial),
        try await fixture.bind("main", pushed.serial),
    ]
    let devices = [fixture.base.device.id, silent.id, pushed.id]
    let found = try await store.bindings(of: fixture.app, after: BindingSerial(0), limit: 9)
    try #require(found.count == 3)
    for (device, binding) in zip(devices, all) { #expect(found.first { $0.device == device }?.binding == binding) }
    let second = try await store.bindings(of: fixture.app, after: found[0].binding.serial, limit: 1)
    #expect(second.map(\.binding) == [found[1].binding])
    #expect(try await store.bindingCount(of: fixture.app) == 3)
    let other = try await fixture.anotherApp()
    #expect(try await store.bindings(of: other, after: BindingSerial(0), limit: 9).isEmpty)
    #expect(try await store.bindingCount(of: other) == 0)
    func toWake(after place: BindingSerial) async throws -> [DeviceID] {
        try await store.bindingsToWake(of: fixture.app, after: place, limit: 9).map(\.device)
    }
    #expect(try await toWake(after: BindingSerial(0)) == [pushed.id])
    #expect(try await toWake(after: all[2].serial).isEmpty)
    _ = try await store.changeRegistration(of: pushed.serial, at: start) { current in
        RegistrationRules.suspend(current, because: .byOperator, at: start).map { .becomes($0) } ?? .nothing
    }
    #expect(try await toWake(after: BindingSerial(0)).isEmpty, "it is suspended")
    _ = try await fixture.bind("other", silent.serial)
    #expect(try await store.bindings(of: fixture.app, after: BindingSerial(0), limit: 9).count == 3, "one ended")
}

private func locationsAreForgotten(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let other = try await fixture.anotherDevice()
    for (device, seconds) in [(fixture.device, Int64(0)), (other.serial, 9)] {
        var binding = try await fixture.bind("main", device)
        binding.values = values([("level", .integer(3)), ("place", vienna)])
        binding.locatedAt = start.adding(seconds: seconds)
        #expect(try await store.change(binding, hasOtherKinds: false, at: start) != nil)
    }
    let before = try #require(try await store.presentBinding(of: fixture.device))
    try await store.forgetLocations(before: start.adding(milliseconds: -1), limit: 9)
    #expect(try await store.presentBinding(of: fixture.device) == before)
    try await store.forgetLocations(before: start, limit: 9)
    let after = try #require(try await store.presentBinding(of: fixture.device))
    #expect(after.values == values([("level", .integer(3))]) && after.locatedAt == nil)
    #expect(after.revision > before.revision && after.cursor.place == UpdateSerial(0))
    #expect(try await store.presentBinding(of: other.serial)?.values.hasLocation == true)
    try await store.forgetLocations(before: start.adding(seconds: 9), limit: 9)
    #expect(try await store.presentBinding(of: other.serial)?.values.hasLocation == false)
}

private func bindingIsReleased(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let binding = try await fixture.bind("one")
    var updates: [Update] = []
    for number in UInt64(1)...4 { updates.append(try await fixture.publish(number)) }
    for (place, update) in updates.prefix(3).enumerated() {
        try await fixture.give(Int64(place + 1), update, to: binding)
    }
    try await fixture.report(.done, of: updates[2], binding)
    try await fixture.evaluate([updates[3]], binding)
    #expect(try await store.bindingsToRelease(limit: 9).isEmpty)
    _ = try await fixture.bind("other")
    let released = ReleasedBinding(binding: binding.serial, device: fixture.device)
    #expect(try await store.bindingsToRelease(limit: 9) == [released])
    #expect(try await store.bindingsToRelease(limit: 0).isEmpty)
    let ids = [1, 2].map { fixture.base.envelope($0).id }
    #expect(try await store.release(binding.serial, limit: 2, at: start) == ids)
    #expect(try await store.release(binding.serial, limit: 2, at: start) == [])
    #expect(try await store.bindingsToRelease(limit: 9) == [released])
    #expect(try await store.release(binding.serial, limit: 2, at: start) == nil)
    #expect(try await store.bindingsToRelease(limit: 9).isEmpty)
    let states = try await store.completions(of: binding.serial, updates.map(\.serial)).map(\.machine.state)
    #expect(states == [.gone, .gone, .done, .gone])
}

private func bindingThatBeganAgainIsKept(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let binding = try await fixture.bind("one")
    let (first, second) = (try await fixture.publish(1), try await fixture.publish(2))
    try await fixture.give(1, first, to: binding)
    try await fixture.receive(1, of: binding)
    try await fixture.evaluate([second], binding)
    _ = try await fixture.bind("other")
    #expect(try await store.release(binding.serial, limit: 1, at: start) == [])
    let later = start.adding(seconds: 5)
    let again = try await fixture.bind("one", at: later)
    #expect(try await !store.bindingsToRelease(limit: 9).map(\.binding).contains(again.serial))
    #expect(try await store.release(binding.serial, limit: 9, at: later) == nil)
    // Entries that the release had ended are due again, and the others continue.
    #expect(try await fixture.state(first, again) == .waiting)
    #expect(try await fixture.completion(first, again)?.machine.dueAt == later)
    #expect(try await fixture.state(second, again) == .waiting)
    #expect(try await store.unfinished(of: again.serial).map(\.key.update) == [first.serial, second.serial])
}

private func contentIsMissed(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let binding = try await fixture.bind("one")
    let content = try await fixture.publish(1, .content, ttl: 60)
    let (popup, live) = (try await fixture.publish(2, ttl: 60), try await fixture.publish(3))
    try await fixture.evaluate([content, popup, live], binding)
    _ = try await fixture.bind("other")
    _ = try await store.release(binding.serial, limit: 9, at: start)
    let later = start.adding(seconds: 60)
    #expect(try await store.endExpiredUpdates(at: later, limit: 9).count == 2)
    let again = try await fixture.bind("one", at: later)
    #expect(again.needsResync)
    let states = try await store.completions(of: again.serial, [content, popup, live].map(\.serial)).map(\.machine.state)
    #expect(states == [.expired, .gone, .waiting])
    #expect(try await !fixture.bind("other", at: later).needsResync, "it had nothing")
    // Updates that were delivered to a device before it connected with another profile are lost, unless it reported a result.
    let reports: [(UInt64, UpdateResult?)] = [(4, nil), (5, .done)]
    for (number, result) in reports {
        let profile = "p\(number)"
        let given = try await fixture.bind(profile, at: later)
        let update = try await fixture.publish(number, .content, ttl: 60, at: later)
        try await fixture.give(Int64(number), update, to: given, at: later)
        try await fixture.receive(Int64(number), of: given, at: later)
        if let result { try await fixture.report(result, of: update, given, at: later) }
        let end = later.adding(seconds: 60)
        #expect(try await store.endExpiredUpdates(at: end, limit: 9).count == 1)
        if result == nil { try await store.endCompletions([(fixture.name(update, given), .expired)], at: end) }
        #expect(try await store.presentBinding(of: fixture.device)?.needsResync == false)
        _ = try await fixture.bind("other", at: end)
        #expect(try await fixture.bind(profile, at: end).needsResync == (result == nil))
    }
}

private func bindingsAreLimited(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let update = try await fixture.publish(1)
    var first: UpdateBinding?
    for number in 0..<UpdateBinding.mostOfDevice {
        let binding = try await fixture.bind("p\(number)", at: start.adding(seconds: Int64(number)))
        try await fixture.evaluate([update], binding)
        if number == 0 { first = binding }
    }
    let now = start.adding(seconds: 500)
    let present = try await store.presentBinding(of: fixture.device)
    #expect(try await store.binding(of: fixture.device, profile: "more", at: now) == nil, "none can be removed")
    #expect(try await store.presentBinding(of: fixture.device) == present, "a refusal changes nothing")
    let oldest = try #require(first)
    let again = try await fixture.bind("p0", at: now)
    #expect(again.serial == oldest.serial, "it is there")
    try await store.endCompletions([(fixture.name(update, again), .done)], at: now)
    #expect(try await fixture.bind("more", at: now).profile == "more")
    let back = try await fixture.bind("p0", at: now)
    #expect(back.serial != oldest.serial, "it was removed as it had nothing unfinished")
}

private func leftContentIsNotMissed(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let store = fixture.store
    let binding = try await fixture.bind("one")
    let content = try await fixture.publish(1, .content, ttl: 60)
    try await fixture.give(1, content, to: binding)
    try await fixture.receive(1, of: binding)
    _ = try await store.leftAudience(
        [fixture.name(content, binding)], of: binding.serial, revision: binding.revision, at: start)
    _ = try await fixture.bind("other")
    #expect(try await store.release(binding.serial, limit: 9, at: start) == [])
    #expect(try await fixture.state(content, binding) == .gone)
    let later = start.adding(seconds: 60)
    #expect(try await store.endExpiredUpdates(at: later, limit: 9).count == 1)
    #expect(try await !fixture.bind("one", at: later).needsResync)
    #expect(try await fixture.state(content, binding) == .gone)
}
