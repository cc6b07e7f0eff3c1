import Foundation
import StoreWorkload
import TestStores
import TestSupport
import Testing

/// A process is killed while it changes a store, and nothing that the store answered is lost.
///
/// `CARILLON_KILLS` sets the number of kills.
@Suite(.timeLimit(.minutes(30)))
struct StoreKillTests {
    private static let kills = Int(ProcessInfo.processInfo.environment["CARILLON_KILLS"] ?? "") ?? 200
    /// So many stores are used at once, one for each core of a small machine.
    private static let stores = 2

    @Test(arguments: NamedStores.allCases)
    func `after kill -9 every answered change is there, and every other one completely or not at all`(
        kind: NamedStores
    ) async throws {
        var random = SeededRandom.forTest("StoreKillTests")
        let seeds = (0..<Self.stores).map { _ in random.next() }
        let tally = try await withThrowingTaskGroup(of: KilledStore.Tally.self) { group in
            for (place, seed) in seeds.enumerated() {
                group.addTask { try await Self.tally(kind, seed, kills: (Self.kills + place) / Self.stores) }
            }
            var all = KilledStore.Tally()
            for try await tally in group { all.add(tally) }
            return all
        }
        print("kills: \(Self.kills), \(tally)")
        #expect(tally.answered >= Self.kills, "a run that did little says little")
        guard Self.kills >= 100 else { return }
        #expect(tally.found > 0 && tally.found < tally.unanswered, "kills must find changes before and after their commit")
        let idle = WorkloadOperation.Kind.allCases.filter { !tally.effective.contains($0) }
        #expect(idle.isEmpty, "operations that never changed anything")
    }

    private static func tally(
        _ kind: NamedStores, _ seed: UInt64, kills: Int
    ) async throws -> KilledStore.Tally {
        var random = SeededRandom(seed: seed)
        var store = try await KilledStore(kind, seed: seed)
        for _ in 0..<kills { try await store.killOnce(&random) }
        return store.tally
    }
}
