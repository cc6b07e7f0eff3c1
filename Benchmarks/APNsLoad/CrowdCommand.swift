import APNsFigures
import ArgumentParser
import CarillonAPNs
import Synchronization

struct CrowdCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "crowd",
        abstract: "Send pushes by a call each, all at once, to a service that has stopped; count what is refused.")

    @OptionGroup var simulator: SimulatorOptions
    @Option(help: "How many pushes are sent.") var offer = 60_000

    private enum End: Sendable {
        case answered, refused, other
    }

    /// Counts the results of the pushes, over all tasks.
    private final class Tally: Sendable {
        private let ends = Mutex((answered: 0, refused: 0, others: 0))

        var now: (answered: Int, refused: Int, others: Int) { ends.withLock { $0 } }

        func add(_ end: End) {
            ends.withLock {
                switch end {
                case .answered: $0.answered += 1
                case .refused: $0.refused += 1
                case .other: $0.others += 1
                }
            }
        }
    }

    func run() async throws {
        let client = try APNsClient(try simulator.configuration())
        let alert = try VaryingAlert(payloadBytes: simulator.payload)
        let tokens = DeviceTokens()
        try await client.warmUp()
        let tally = Tally()
        let before = try OwnUsage.resident()
        let figures = try await withThrowingTaskGroup(of: Void.self) { group in
            // The tasks are in groups of a thousand, because a finished task searches the others of its group.
            for first in stride(from: 0, to: offer, by: 1000) {
                let numbers = first..<min(first + 1000, offer)
                group.addTask {
                    await withTaskGroup(of: Void.self) { thousand in
                        for number in numbers {
                            thousand.addTask { await Self.send(number, client, alert, tokens, tally) }
                        }
                    }
                }
            }
            let ends = try await Self.settled(tally)
            let figures = Figures.Crowd(
                offered: offer, bound: client.configuration.queueLimit, answered: ends.answered, refused: ends.refused,
                others: ends.others, residentBefore: before, residentAfter: try OwnUsage.resident())
            // The waiting pushes end.
            await client.shutDown(drains: false)
            return figures
        }
        try APNsLoad.say(figures)
    }

    private static func send(
        _ number: Int, _ client: APNsClient, _ alert: VaryingAlert, _ tokens: DeviceTokens, _ tally: Tally
    ) async {
        do {
            _ = try await client.send(alert.notification(number), to: tokens[number])
            tally.add(.answered)
        } catch {
            tally.add(error.code == .queueFull ? .refused : .other)
        }
    }

    /// Waits until no push has ended for a second, because the service sends no more responses then.
    private static func settled(_ tally: Tally) async throws -> (answered: Int, refused: Int, others: Int) {
        var last = tally.now
        while true {
            try await Task.sleep(for: .seconds(1))
            let now = tally.now
            if now == last { return now }
            last = now
        }
    }
}
