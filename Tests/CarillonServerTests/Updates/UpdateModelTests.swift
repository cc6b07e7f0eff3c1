import Foundation
import TestSupport
import Testing

/// Random scenarios of audience updates, compared with ``UpdateModel``.
@Suite(.timeLimit(.minutes(15)))
struct UpdateModelTests {
    @Test(arguments: RandomSeed.some(1...100)) func `each device ends with exactly the expected updates`(seed: UInt64)
        async throws
    {
        try await UpdateModel(seed: seed).run()
    }

    @Test(arguments: RandomSeed.some(1...20))
    func `the same is true with restored backups, clocks that step back and full inboxes`(
        seed: UInt64
    ) async throws {
        var settings = UpdateModel.Settings()
        (settings.phones, settings.steps, settings.entries, settings.isRough) = (6, 150, 5, true)
        let model = try await UpdateModel(seed: seed, settings)
        try await model.run()
    }

    /// `CARILLON_UPDATE_SEEDS` is how many times, each of a thousand devices over a month.
    @Test func `a thousand devices`() async throws {
        let seeds = ProcessInfo.processInfo.environment["CARILLON_UPDATE_SEEDS"].flatMap(UInt64.init)
        var settings = UpdateModel.Settings()
        settings.phones = seeds == nil ? 100 : 1000
        (settings.steps, settings.updates, settings.entries, settings.isRough) = (400, 60, 8, true)
        settings.violationsEvery = 50
        for seed in 1...(seeds ?? 1) {
            let model = try await UpdateModel(seed: seed, settings)
            try await model.run()
            print("seed \(seed): \(model.polls) polls, \(model.restores) restores")
        }
    }
}
