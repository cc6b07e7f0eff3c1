import CarillonBasics
import CarillonCore
import CarillonWire
import HTTPTypes
import Synchronization
import TestStores
import TestSupport
import Testing

@testable import CarillonServer

/// Devices that lose answers, change their reports, disconnect, fail and are restored from backups, and a server with the same
/// faults, beside a naive model: each device ends with exactly the expected updates.
final class UpdateModel {
    struct Settings {
        /// The first of them has two users by turns.
        var phones = 4
        var steps = 60
        /// Published at most.
        var updates = 16
        /// Of an inbox.
        var entries = 10_000
        /// Whether the store and phones are restored from backups, clocks step back, and kinds change.
        var isRough = false
        /// The number of steps after which the store is checked.
        var violationsEvery = 1
    }

    static let regions = ["north", "south", "east"]
    static let objects = 5

    struct Published {
        var id: String
        var region: String?
        var isStanding: Bool
        /// Nil for an update that is not content.
        var object: Int?
        /// In seconds of the world's clock.
        var expiresAt: Timestamp
        var orderKey: String?
        /// Withdrawn, superseded, expired, or unknown to a server that was restored.
        var isOver = false
        /// Withdrawn, superseded or unknown.
        var isTakenBack = false

        func matches(_ region: String) -> Bool { self.region == nil || self.region == region }
    }

    /// The state of a phone, and its backup.
    struct Memory {
        /// The answer to its last poll.
        var position: String?
        /// Of each object, how much was published when the app fetched it last.
        var fetched = Array(repeating: 0, count: objects)
        /// The updates that it has, and has not reported.
        var evaluated: [UpdateWorld.Copy] = []
    }

    /// A device with one of its users.
    struct Phone {
        var device: UpdateWorld.Device
        var user: String?
        var memory = Memory()
        var backup: Memory?
        var region = "north"
        var revision = 0
        var kinds = UpdateWorld.kinds
        /// By update and entry, the app's handling of it: it is durable.
        var processed: [String: Set<Int>] = [:]
        /// Updates for which it polled in a region that matches, ever.
        var mayHave: Set<String> = []
        /// The number of times that it began to match each: its entries are not more.
        var entries: [String: Int] = [:]
        var matching: Set<String> = []
        /// Updates to which it belonged ever since they were published.
        var steady: Set<String> = []
        /// Of these, by order key, the numbers of those that are delivered once, in the order of their processing.
        var order: [String: [Int]] = [:]
        /// A position of some polls ago.
        var former: String?
    }

    private let seed: UInt64
    private let settings: Settings
    private var random: SeededRandom
    private var world: UpdateWorld
    private var phones: [Phone] = []
    private var published: [Published] = []
    private var backup: (copy: StoreCopy, published: [Published])?
    private(set) var restores = 0
    private(set) var polls = 0

    init(seed: UInt64, _ settings: Settings = .init()) async throws {
        (self.seed, self.settings, random) = (seed, settings, SeededRandom(seed: seed))
        let store = StoreSettings(inbox: InboxLimits(envelopes: settings.entries))
        world = try await UpdateWorld(
            store: settings.isRough ? stores.openKept(store) : stores.open(store))
        phones = ["anna", "bert"].map { Phone(device: world.first, user: $0) }
        while phones.count < settings.phones { phones.append(Phone(device: try await world.device())) }
        _ = try await world.routes.request(.patch, "/v1/device", key: world.first.credential, #"{"locale":"de"}"#)
    }

    func run() async throws {
        for index in phones.indices { try await poll(index) }
        for step in 0..<settings.steps {
            try await self.step()
            if step % settings.violationsEvery == 0 {
                #expect(try await stores.countMissingCompletions(in: world.routes.store) == 0, "seed \(seed)")
            }
        }
        if settings.isRough {
            checkOrder()
            // Parked updates are requeued, and are late.
            for index in phones.indices { phones[index].order = [:] }
        }
        try await end()
        checkOrder()
        try await check()
        #expect(try await stores.wrongCounters(in: world.routes.store) == [], "seed \(seed)")
        try await stores.close(world.routes.store)
    }

    private func step() async throws {
        switch Int.random(in: 0..<10, using: &random) {
        case 0...1 where published.count < settings.updates: try await publish()
        case 2:
            guard let index = published.indices.filter({ !published[$0].isOver }).randomElement(using: &random), chance(3)
            else { return }
            try await world.withdraw(published[index].id)
            takenBack(index)
        case 3 where settings.isRough && chance(4): try await restoreOrBackUp()
        case 3:
            let isBack = settings.isRough && chance(6)
            let longest: Int64 = settings.isRough ? 200_000 : 90_000
            try await advance(isBack ? -3600 : [1, 40, 4000, 90_000, longest].randomElement(using: &random) ?? 1)
        default:
            // The number of events between two events that affect all.
            for _ in 0..<max(1, settings.phones / 40) {
                let index = phones.indices.randomElement(using: &random) ?? 0
                if chance(4) { move(index) }
                if settings.isRough { restoreOrBackUp(index) }
                try await poll(index)
            }
        }
    }

    private func chance(_ one: Int) -> Bool { Int.random(in: 0..<one, using: &random) == 0 }

    // MARK: Events for all

    private func advance(_ seconds: Int64) async throws {
        world.advance(seconds: seconds)
        try await sweep()
    }

    private func sweep() async throws {
        try await world.sweep()
        for index in published.indices where world.now >= published[index].expiresAt { published[index].isOver = true }
    }

    private func takenBack(_ index: Int) { (published[index].isOver, published[index].isTakenBack) = (true, true) }

    private func publish() async throws {
        let region = Bool.random(using: &random) ? Self.regions.randomElement(using: &random) : nil
        let isStanding = Bool.random(using: &random)
        let object = !chance(4) ? Int.random(in: 0..<Self.objects, using: &random) : nil
        let ttl: Int64 = chance(3) ? 7200 : 90 * 86_400
        let orderKey = chance(3) ? Bool.random(using: &random) ? "a" : "b" : nil
        var rest = orderKey.map { #","orderKey":"\#($0)""# } ?? ""
        let superseded =
            chance(6) ? published.indices.filter { !published[$0].isOver }.randomElement(using: &random) : nil
        if let superseded { rest += #","supersedes":"\#(published[superseded].id)""# }
        let id = try await world.publish(
            object == nil ? "popup" : "content",
            object.map { #"{"action":"refresh","object":"\#($0)"}"# } ?? #"{"style":"failure","title":"t"}"#,
            audience: region.map { "region == '\($0)'" },
            #","ttl":\#(ttl)"# + (isStanding ? #","mode":"standing""# : "") + rest)
        if let superseded { takenBack(superseded) }
        let update = Published(
            id: id, region: region, isStanding: isStanding, object: object, expiresAt: world.now.adding(seconds: ttl),
            orderKey: orderKey)
        published.append(update)
        for index in phones.indices where update.matches(phones[index].region) { phones[index].steady.insert(id) }
    }

    private func restoreOrBackUp() async throws {
        guard let backup else {
            self.backup = (try await stores.backUp(world.routes.store), published)
            return
        }
        self.backup = nil
        try await stores.close(world.routes.store)
        let limits = StoreSettings(inbox: InboxLimits(envelopes: settings.entries))
        let restored = try await stores.restore(backup.copy, holdsUpdates: false, at: world.now, limits)
        world = try await UpdateWorld(world, goingOnWith: restored.store)
        restores += 1
        // It is unknown what was published since; withdrawals since are known.
        for index in published.indices {
            if index < backup.published.count {
                published[index].isOver = backup.published[index].isOver
                published[index].isTakenBack = backup.published[index].isTakenBack
            } else {
                takenBack(index)
            }
        }
        for index in phones.indices { phones[index].order = [:] }
        try await sweep()
    }

    // MARK: Actions of phones

    private func move(_ index: Int) {
        phones[index].region = Self.regions.randomElement(using: &random) ?? "north"
        phones[index].revision += 1
        for update in published where !update.matches(phones[index].region) { phones[index].steady.remove(update.id) }
        guard settings.isRough, chance(3) else { return }
        // Another version of the app.
        phones[index].kinds = chance(3) ? ["content"] : UpdateWorld.kinds
    }

    private func restoreOrBackUp(_ index: Int) {
        guard chance(10), phones[index].user == nil else { return }
        if let backup = phones[index].backup {
            (phones[index].memory, phones[index].backup, phones[index].former) = (backup, nil, nil)
        } else {
            phones[index].backup = phones[index].memory
        }
    }

    /// One poll, whose answer may be lost.
    private func poll(_ index: Int, isCalm: Bool = false) async throws {
        polls += 1
        var phone = phones[index]
        defer { phones[index] = phone }
        if let user = phone.user, try await signIn(user, on: phone.device) {
            // Entries that another user left at the device are removed, and the user's own with them.
            (phone.memory.position, phone.former, phone.memory.evaluated) = (nil, nil, [])
        }
        note(&phone)
        if isCalm { phone.kinds = UpdateWorld.kinds }
        var results: [String] = []
        var finished: [UpdateWorld.Copy] = []
        for copy in phone.memory.evaluated where isCalm || Bool.random(using: &random) {
            let result = isCalm ? "done" : ["done", "done", "failed", "deferred"].randomElement(using: &random) ?? "done"
            if result == "done" { process(copy, &phone) }
            let rest = result == "deferred" ? #","delay":30"# : ""
            results.append(
                #"{"update":"\#(copy.update)","entry":\#(copy.entry),"attempt":\#(copy.attempt),"result":"\#(result)"\#(rest)}"#
            )
            if result != "deferred" { finished.append(copy) }
        }
        var position = phone.memory.position
        if !isCalm, let former = phone.former, chance(12) {
            // An older request is repeated, as by a proxy.
            position = former
            phone.former = nil
        } else if chance(4) {
            phone.former = position
        }
        let parameters = UpdateWorld.parameters(#""region":"\#(phone.region)""#, revision: "\(phone.revision)")
        let said = #","results":[\#(results.joined(separator: ","))]"#
        let copies = try await world.poll(phone.device, parameters + said, kinds: phone.kinds, position: .some(position))
        // If no device received it, the client has its earlier knowledge.
        if !isCalm, chance(4) { return }
        phone.memory.position = phone.device.position.withLock { $0 }
        phone.memory.evaluated.removeAll { copy in finished.contains { $0.update == copy.update && $0.entry == copy.entry } }
        for copy in copies {
            phone.memory.evaluated.removeAll { $0.update == copy.update && $0.entry == copy.entry }
            // Taken back, or processed before: the effect is not repeated, and is reported once more.
            if copy.attempt > 0 { phone.memory.evaluated.append(copy) }
        }
    }

    /// Answers whether it was another before.
    private func signIn(_ user: String, on device: UpdateWorld.Device) async throws -> Bool {
        let store = world.routes.store
        let id = try #require(DeviceID(device.id))
        let serial = try #require(try await store.device(id)).serial
        if try await store.user(of: serial) == UserID(user) { return false }
        try await world.signIn(user, on: device)
        return true
    }

    /// The app fetches the current content, and everything if it is asked to.
    private func process(_ copy: UpdateWorld.Copy, _ phone: inout Phone) {
        guard let number = published.firstIndex(where: { $0.id == copy.update }) else {
            phone.memory.fetched = Array(repeating: published.count, count: Self.objects)
            return
        }
        let update = published[number]
        let isNew = phone.processed[copy.update, default: []].insert(copy.entry).inserted
        // An update that the device did not know delays nothing.
        let isKnown = !settings.isRough || update.object != nil
        if isNew, isKnown, let key = update.orderKey, !update.isStanding, phone.steady.contains(update.id) {
            phone.order[key, default: []].append(number)
        }
        if let object = update.object { phone.memory.fetched[object] = published.count }
    }

    private func note(_ phone: inout Phone) {
        for update in published where !update.isOver {
            if update.matches(phone.region) {
                phone.mayHave.insert(update.id)
                if phone.matching.insert(update.id).inserted { phone.entries[update.id, default: 0] += 1 }
            } else {
                phone.matching.remove(update.id)
            }
        }
    }

    // MARK: The end

    /// Every device connects, and completes its updates.
    private func end() async throws {
        for _ in 0..<6 {
            try await advance(7 * 3600)
            for update in published where settings.isRough && !update.isOver {
                let answer = try await world.routes.request(
                    .post, "/v1/updates/\(update.id)/requeue", key: world.sender, "{}")
                #expect(answer.status == 200)
            }
            for index in phones.indices {
                for _ in 0..<2 { try await poll(index, isCalm: true) }
            }
        }
    }

    private func checkOrder() {
        for phone in phones {
            for (key, numbers) in phone.order { #expect(numbers == numbers.sorted(), "the order of \(key), seed \(seed)") }
        }
    }

    private func check() async throws {
        for phone in phones {
            for (number, update) in published.enumerated() {
                let processed = phone.processed[update.id] ?? []
                #expect(
                    processed.isEmpty || phone.mayHave.contains(update.id),
                    "\(update) reached a device that never matched, seed \(seed)")
                #expect(
                    processed.count <= (update.isStanding ? phone.entries[update.id] ?? 0 : 1),
                    "\(update) \(processed), seed \(seed)")
                if let object = update.object {
                    let isOwed = !update.isTakenBack && phone.steady.contains(update.id)
                    if isOwed || !update.isOver && update.matches(phone.region) {
                        #expect(phone.memory.fetched[object] > number, "\(update) was lost, seed \(seed)")
                    }
                } else if !update.isOver, update.matches(phone.region) {
                    #expect(!processed.isEmpty, "\(update) was lost, seed \(seed)")
                }
            }
        }
        for update in published where !update.isOver {
            let counts = try await world.counts(update.id)
            #expect(
                Set(counts.keys).isSubset(of: update.object == nil ? ["done", "gone"] : ["done", "gone", "superseded"]),
                "\(counts), seed \(seed)")
        }
    }
}
