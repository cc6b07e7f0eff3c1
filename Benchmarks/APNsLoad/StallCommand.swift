import APNsFigures
import ArgumentParser
import CarillonAPNs

struct StallCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stall",
        abstract: "Offer pushes by one batch call to a service that has stopped, until each was given up.")

    @OptionGroup var simulator: SimulatorOptions
    @Option(help: "How many pushes are offered.") var offer = 1_000_000
    @Option(help: "When a push is given up, in milliseconds.") var timeout = 50

    func run() async throws {
        var configuration = try simulator.configuration()
        // A push that times out makes room for the next one. With the default of 30 seconds this would take four hours.
        configuration.timeout = .milliseconds(timeout)
        let client = try APNsClient(configuration)
        let alert = try VaryingAlert(payloadBytes: simulator.payload)
        let tokens = DeviceTokens()
        try await client.warmUp()
        var figures = Figures.Stall(
            offered: offer, answered: 0, timedOut: 0, others: 0, seconds: 0,
            residentBefore: try OwnUsage.resident(), residentAfter: 0, residentAtMost: 0)
        let start = Start()
        for await result in try client.send(alert.notification(1), to: tokens.first(offer)) {
            switch result.result {
            case .success: figures.answered += 1
            case .failure(let error) where [.timedOut, .notSent].contains(error.code): figures.timedOut += 1
            case .failure: figures.others += 1
            }
        }
        figures.seconds = start.elapsed / .seconds(1)
        figures.residentAfter = try OwnUsage.resident()
        figures.residentAtMost = try OwnUsage.residentAtMost()
        await client.shutDown(drains: false)
        try APNsLoad.say(figures)
    }
}
