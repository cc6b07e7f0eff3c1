import CarillonBasics
import CarillonCore
import CarillonSQLite
import CarillonWire
import HTTPTypes
import Synchronization
import TestSupport
import Testing

@testable import CarillonServer

/// Devices that lose answers, change what they say of themselves, stay away and fail, beside what a naive eye sees: each ends with exactly
/// what it should.
@Suite(.timeLimit(.minutes(5)))
struct UpdateModelTests {
    private static let regions = ["north", "south", "east"]
    private static let objects = 5

    private struct Published {
        var id: String
        var region: String?
        var isStanding: Bool
        /// Nil of one that is no content.
        var object: Int?
        /// In seconds of the world's clock.
        var expiresAt: Timestamp
        var orderKey: String?
        /// Or superseded.
        var isWithdrawn = false

        func matches(_ region: String) -> Bool { self.region == nil || self.region == region }
    }

    /// A device with one of its users.
    private struct Phone {
        var device: UpdateWorld.Device
        var user: String?
        /// What its last poll was answered with.
        var position: String?
        var region = "north"
        var revision = 0
        /// By update and entry, what the app did with it: it lasts.
        var processed: [String: Set<Int>] = [:]
        /// Of each object, how much was published when the app fetched it last.
        var fetched = Array(repeating: 0, count: objects)
        /// What it holds, and has not reported.
        var held: [UpdateWorld.Copy] = []
        /// Updates for which it was asked in a region that matches, ever.
        var mayHave: Set<String> = []
        /// How often it came to match each: its entries are no more.
        var entries: [String: Int] = [:]
        var matching: Set<String> = []
        /// Updates to which it belonged ever since they were published.
        var steady: Set<String> = []
        /// Of these, by order key, the numbers of those that are given once, as the app processed them.
        var order: [String: [Int]] = [:]
        /// A position of some polls ago.
        var former: String?
    }

    @Test(arguments: 1...100) func `each device ends with exactly what it should`(seed: UInt64) async throws {
        var random = SeededRandom(seed: seed)
        let world = try await UpdateWorld()
        // Two users take turns with the first.
        var phones = ["anna", "bert"].map { Phone(device: world.first, user: $0) }
        for _ in 0..<2 { phones.append(Phone(device: try await world.device())) }
        _ = try await world.routes.request(.patch, "/v1/device", key: world.first.credential, #"{"locale":"de"}"#)
        var published: [Published] = []
        for index in phones.indices { try await poll(&phones[index], world, published, &random) }
        for _ in 0..<60 {
            switch Int.random(in: 0..<10, using: &random) {
            case 0...1 where published.count < 16:
                published.append(try await publish(world, &published, &random))
                for index in phones.indices where published[published.count - 1].matches(phones[index].region) {
                    phones[index].steady.insert(published[published.count - 1].id)
                }
            case 2:
                guard let index = published.indices.filter({ isLive(published[$0], world) }).randomElement(using: &random),
                    Int.random(in: 0..<3, using: &random) == 0
                else { break }
                try await world.withdraw(published[index].id)
                published[index].isWithdrawn = true
            case 3:
                world.advance(seconds: [1, 40, 4000, 90_000].randomElement(using: &random) ?? 1)
                try await world.sweep()
            default:
                let index = phones.indices.randomElement(using: &random) ?? 0
                if Int.random(in: 0..<4, using: &random) == 0 { move(&phones[index], published, &random) }
                try await poll(&phones[index], world, published, &random)
            }
            #expect(try await world.routes.store.numbers(Self.violations) == [0], "seed \(seed)")
        }
        try await end(&phones, world, published)
        for phone in phones {
            for (key, numbers) in phone.order { #expect(numbers == numbers.sorted(), "the order of \(key), seed \(seed)") }
            for (number, update) in published.enumerated() {
                let processed = phone.processed[update.id] ?? []
                #expect(processed.isEmpty || phone.mayHave.contains(update.id), "\(update) reached who never matched")
                #expect(processed.count <= (update.isStanding ? phone.entries[update.id] ?? 0 : 1), "\(update) \(processed)")
                if let object = update.object {
                    let isOwed = !update.isWithdrawn && phone.steady.contains(update.id)
                    if isOwed || isLive(update, world) && update.matches(phone.region) {
                        #expect(phone.fetched[object] > number, "\(update) was lost")
                    }
                } else if isLive(update, world), update.matches(phone.region) {
                    #expect(!processed.isEmpty, "\(update) was lost")
                }
            }
        }
        for update in published where isLive(update, world) {
            let counts = try await world.counts(update.id)
            #expect(Set(counts.keys).isSubset(of: update.object == nil ? ["done"] : ["done", "superseded"]), "\(counts)")
        }
    }

    /// Every live update up to where a binding was held that matches what it says has a row of it.
    private static let violations = """
        SELECT count(*) FROM binding JOIN audience_update AS published ON published.app = binding.app AND published.status = 0
            AND NOT is_resync AND published.serial <= binding.held_to
        WHERE ended_at IS NULL AND (audience IS NULL
                OR audience = 'region == ''' || json_extract(CAST(binding.parameters AS TEXT), '$.region') || '''')
            AND NOT EXISTS (SELECT 1 FROM completion WHERE completion.binding = binding.serial
                AND in_update = published.serial AND NOT (is_standing AND has_left))
        """

    private func isLive(_ update: Published, _ world: UpdateWorld) -> Bool {
        !update.isWithdrawn && world.now < update.expiresAt
    }

    private func publish(
        _ world: UpdateWorld, _ published: inout [Published], _ random: inout SeededRandom
    ) async throws -> Published {
        let region = Bool.random(using: &random) ? Self.regions.randomElement(using: &random) : nil
        let isStanding = Bool.random(using: &random)
        let object = Int.random(in: 0..<4, using: &random) > 0 ? Int.random(in: 0..<Self.objects, using: &random) : nil
        let ttl: Int64 = Int.random(in: 0..<3, using: &random) == 0 ? 7200 : 90 * 86_400
        let orderKey = Int.random(in: 0..<3, using: &random) == 0 ? Bool.random(using: &random) ? "a" : "b" : nil
        var rest = orderKey.map { #","orderKey":"\#($0)""# } ?? ""
        let superseded =
            Int.random(in: 0..<6, using: &random) > 0
            ? nil : published.indices.filter { isLive(published[$0], world) }.randomElement(using: &random)
        if let superseded {
            rest += #","supersedes":"\#(published[superseded].id)""#
            published[superseded].isWithdrawn = true
        }
        let id = try await world.publish(
            object == nil ? "popup" : "content",
            object.map { #"{"action":"refresh","object":"\#($0)"}"# } ?? #"{"style":"failure","title":"t"}"#,
            audience: region.map { "region == '\($0)'" },
            #","ttl":\#(ttl)"# + (isStanding ? #","mode":"standing""# : "") + rest)
        return Published(
            id: id, region: region, isStanding: isStanding, object: object, expiresAt: world.now.adding(seconds: ttl),
            orderKey: orderKey)
    }

    private func move(_ phone: inout Phone, _ published: [Published], _ random: inout SeededRandom) {
        phone.region = Self.regions.randomElement(using: &random) ?? "north"
        phone.revision += 1
        for update in published where !update.matches(phone.region) { phone.steady.remove(update.id) }
    }

    /// One poll, whose answer may be lost.
    private func poll(
        _ phone: inout Phone, _ world: UpdateWorld, _ published: [Published], _ random: inout SeededRandom,
        isCalm: Bool = false
    ) async throws {
        if let user = phone.user, try await signIn(user, on: phone.device, world) {
            // What another left at the device is gone, and his own with it.
            (phone.position, phone.former, phone.held) = (nil, nil, [])
        }
        note(&phone, world, published)
        var results: [String] = []
        var finished: [UpdateWorld.Copy] = []
        for copy in phone.held where isCalm || Bool.random(using: &random) {
            let result = isCalm ? "done" : ["done", "done", "failed", "deferred"].randomElement(using: &random) ?? "done"
            if result == "done" { process(copy, &phone, published) }
            let rest = result == "deferred" ? #","delay":30"# : ""
            results.append(
                #"{"update":"\#(copy.update)","entry":\#(copy.entry),"attempt":\#(copy.attempt),"result":"\#(result)"\#(rest)}"#
            )
            if result != "deferred" { finished.append(copy) }
        }
        var position = phone.position
        if !isCalm, let former = phone.former, Int.random(in: 0..<12, using: &random) == 0 {
            // An older request comes once more, as by a proxy, or from a backup of the phone.
            position = former
            phone.former = nil
        } else if Int.random(in: 0..<4, using: &random) == 0 {
            phone.former = position
        }
        let parameters = UpdateWorld.parameters(#""region":"\#(phone.region)""#, revision: "\(phone.revision)")
        let said = #","results":[\#(results.joined(separator: ","))]"#
        let copies = try await world.poll(phone.device, parameters + said, position: .some(position))
        // Where nobody got it, the client knows what it knew.
        if !isCalm, Int.random(in: 0..<4, using: &random) == 0 { return }
        phone.position = phone.device.position.withLock { $0 }
        phone.held.removeAll { copy in finished.contains { $0.update == copy.update && $0.entry == copy.entry } }
        for copy in copies {
            phone.held.removeAll { $0.update == copy.update && $0.entry == copy.entry }
            // Taken back, or processed before: the effect is not repeated, and is reported once more.
            if copy.attempt > 0 { phone.held.append(copy) }
        }
    }

    /// Answers whether it was another before.
    private func signIn(_ user: String, on device: UpdateWorld.Device, _ world: UpdateWorld) async throws -> Bool {
        let store = world.routes.store
        let ofDevice = "FROM device_profile WHERE device = (SELECT serial FROM device WHERE lower(hex(id)) = '\(device.id)')"
        if try await store.numbers("SELECT count(*) \(ofDevice) AND user = '\(user)'") == [1] { return false }
        try await store.run(
            "UPDATE device_profile SET user = '\(user)' WHERE device = (SELECT device \(ofDevice))")
        return true
    }

    /// The app fetches what is there now, and everything where it is told so.
    private func process(_ copy: UpdateWorld.Copy, _ phone: inout Phone, _ published: [Published]) {
        guard let update = published.first(where: { $0.id == copy.update }) else {
            phone.fetched = Array(repeating: published.count, count: Self.objects)
            return
        }
        let isNew = phone.processed[copy.update, default: []].insert(copy.entry).inserted
        if isNew, let key = update.orderKey, !update.isStanding, phone.steady.contains(update.id),
            let number = published.firstIndex(where: { $0.id == copy.update })
        {
            phone.order[key, default: []].append(number)
        }
        if let object = update.object { phone.fetched[object] = published.count }
    }

    private func note(_ phone: inout Phone, _ world: UpdateWorld, _ published: [Published]) {
        for update in published where isLive(update, world) {
            if update.matches(phone.region) {
                phone.mayHave.insert(update.id)
                if phone.matching.insert(update.id).inserted { phone.entries[update.id, default: 0] += 1 }
            } else {
                phone.matching.remove(update.id)
            }
        }
    }

    /// Everybody comes, and is done with what is there.
    private func end(_ phones: inout [Phone], _ world: UpdateWorld, _ published: [Published]) async throws {
        var random = SeededRandom(seed: 1)
        for _ in 0..<6 {
            world.advance(seconds: 7 * 3600)
            try await world.sweep()
            for index in phones.indices {
                for _ in 0..<2 { try await poll(&phones[index], world, published, &random, isCalm: true) }
            }
        }
    }
}
