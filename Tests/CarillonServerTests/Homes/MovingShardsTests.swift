import CarillonCore
import Foundation
import Synchronization
import TestStores
import TestSupport
import Testing

@testable import CarillonServer

/// Shards move between the homes of a server continuously, while devices and senders use everything.
///
/// Nothing is lost, doubled or late, positions ascend, each crossing fires once, and no client is asked to send or fetch
/// everything again.
///
/// `CARILLON_MOVING_SECONDS` is the time for which senders send. Without it, it is 20 seconds; `make test-moves` takes 60. The
/// scenario continues until each kind of event has occurred often enough. `CARILLON_SEED` repeats the random choices, but not
/// their times.
@Suite(.timeLimit(.minutes(20)))
struct MovingShardsTests {
    private static let seconds = Int(ProcessInfo.processInfo.environment["CARILLON_MOVING_SECONDS"] ?? "") ?? 20
    private static let seed = UInt64.random(in: 0..<1_000_000)
    private static let mostShown = 12

    /// Opens stores as servers do, and keeps the last one for the test.
    private final class KeptStore: StoreFactory {
        private let factory = stores.factory
        private let opened = Mutex<(any Store)?>(nil)

        var store: (any Store)? { opened.withLock { $0 } }

        func open(directory: String, makesMissing: Bool, settings: StoreSettings) throws -> OpenedStore {
            let made = try factory.open(directory: directory, makesMissing: makesMissing, settings: settings)
            opened.withLock { $0 = made.store }
            return made
        }

        func attachmentFiles(of directory: String) -> any AttachmentFiles { factory.attachmentFiles(of: directory) }

        func backUp(_ directory: String, to path: String) async throws { try await factory.backUp(directory, to: path) }

        func restore(_ backup: String, to directory: String, holdsUpdates: Bool, at now: Timestamp) async throws
            -> LiveUpdateCount
        {
            try await factory.restore(backup, to: directory, holdsUpdates: holdsUpdates, at: now)
        }
    }

    @Test(arguments: RandomSeed.some(seed...seed))
    func `nothing is lost, doubled or late while shards move without pause`(_ seed: UInt64) async throws {
        let (kept, log) = (KeptStore(), LogCatcher())
        let directory = try TemporaryDirectory.make() + "/data"
        try await WatchedServer.run(directory, settings: { $0.homes = 2 }, factory: kept, logger: log.logger) { server in
            let store = try #require(kept.store)
            let http = ScenarioHTTP(port: server.port)
            do {
                try await notify(MovingShards(server, store, http, seed: seed), log)
                try await http.close()
            } catch {
                try await http.close()
                throw error
            }
        }
    }

    private func notify(_ scenario: MovingShards, _ log: LogCatcher) async throws {
        await scenario.run(seconds: Self.seconds)
        let problems = await scenario.problems()
        let summary = scenario.summary(scenario.findings())
        print(summary)
        for problem in problems.prefix(Self.mostShown) { Issue.record("\(problem) CARILLON_SEED=\(scenario.record.seed)") }
        #expect(problems.isEmpty, "There are \(problems.count) problems. \(summary). The log: \(Self.faults(in: log))")
        #expect(scenario.untried.isEmpty, "This did not happen often enough: \(scenario.untried). \(summary)")
    }

    /// Returns the last lines of the server's log that need an operator.
    private static func faults(in log: LogCatcher) -> String {
        let lines = log.lines.filter { $0.hasPrefix("warning ") || $0.hasPrefix("error ") }
        return "\(lines.count) lines, the last are " + lines.suffix(10).joined(separator: " | ")
    }
}
