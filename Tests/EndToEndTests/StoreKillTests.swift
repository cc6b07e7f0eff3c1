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
    /// The number of stores that are used at once, one for each core of a small machine.
    private static let stores = 2
    /// A slow machine changes less before each kill. The number of repetitions of the kills until all has been tested.
    private static let mostTimes = 4

    private struct Run {
        let seed: UInt64
        var store: KilledStore

        func killed(_ times: Int, after kills: Int) async throws -> Run {
            var run = self
            var random = SeededRandom(seed: seed &+ UInt64(kills))
            for _ in 0..<times { try await run.store.killOnce(&random) }
            return run
        }
    }

    @Test(arguments: NamedStores.allCases)
    func `after kill -9 every answered change exists, and every other one completely or not at all`(
        kind: NamedStores
    ) async throws {
        var random = SeededRandom.forTest("StoreKillTests")
        var runs: [Run] = []
        for _ in 0..<Self.stores {
            let seed = random.next()
            runs.append(Run(seed: seed, store: try await KilledStore(kind, seed: seed)))
        }
        var (kills, tally) = (0, KilledStore.Tally())
        while kills < Self.kills || kills < Self.mostTimes * Self.kills && !Self.hasTriedAll(tally) {
            let times = kills == 0 ? (Self.kills + Self.stores - 1) / Self.stores : 10
            runs = try await Self.kill(runs, times, after: kills)
            kills += times * Self.stores
            tally = KilledStore.Tally()
            for run in runs { tally.add(run.store.tally) }
        }
        print("kills: \(kills), \(tally)")
        #expect(tally.answered >= Self.kills, "a run with few operations tests little")
        guard Self.kills >= 100 else { return }
        #expect(tally.found > 0 && tally.found < tally.unanswered, "kills must find changes before and after their commit")
        let idle = Self.idle(tally)
        #expect(idle.isEmpty, "operations that never changed anything")
    }

    private static func kill(_ runs: [Run], _ times: Int, after kills: Int) async throws -> [Run] {
        try await withThrowingTaskGroup(of: Run.self) { group in
            for run in runs { group.addTask { try await run.killed(times, after: kills) } }
            var all: [Run] = []
            for try await run in group { all.append(run) }
            return all
        }
    }

    private static func idle(_ tally: KilledStore.Tally) -> [WorkloadOperation.Kind] {
        WorkloadOperation.Kind.allCases.filter { !tally.effective.contains($0) }
    }

    private static func hasTriedAll(_ tally: KilledStore.Tally) -> Bool {
        guard tally.answered >= kills else { return false }
        return kills < 100 || tally.found > 0 && tally.found < tally.unanswered && idle(tally).isEmpty
    }
}
