import APNsFigures
import ArgumentParser
import CarillonAPNs

struct PushCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "push", abstract: "Send a round of pushes in a new process, and another one when it is warm.")

    @OptionGroup var simulator: SimulatorOptions
    @Option(help: "The most connections.") var connections = 1
    @Option(help: "How many pushes are under way at once.") var inFlight = 500
    @Flag(help: "One call for each round, in place of one for each push.") var batch = false
    @Option(help: "How many pushes the first round has.") var cold = 50_000
    @Option(help: "How many pushes the second round has.") var warm = 200_000

    func run() async throws {
        let alert = try VaryingAlert(payloadBytes: simulator.payload)
        let start = Start()
        var configuration = try simulator.configuration(connections: connections)
        configuration.batchWindow = inFlight
        let sender = Sender(client: try APNsClient(configuration), alert: alert)
        try await sender.first()
        let first = start.elapsed
        let cold = try await round(sender, self.cold, since: start, already: 1)
        let warm = try await round(sender, self.warm, already: 0)
        await sender.client.shutDown()
        try APNsLoad.say(Figures.Pushing(firstMilliseconds: first / .milliseconds(1), cold: cold, warm: warm))
    }

    private func round(
        _ sender: Sender, _ count: Int, since beginning: Start? = nil, already: Int
    ) async throws -> Figures.Round {
        let rest = count - already
        // A caller of a batch has a list of recipients, so the list is made before the batch call.
        let recipients = batch ? Array(sender.tokens.first(rest)) : []
        let start = beginning ?? Start()
        let failures =
            batch ? try await sender.batch(recipients) : await sender.singles(rest, inFlight: inFlight)
        return Figures.Round(
            pushes: count, seconds: start.elapsed / .seconds(1), cpuMicroseconds: try start.cpuMicroseconds(),
            failures: failures)
    }
}

/// The start of a round, in wall time and CPU time.
struct Start {
    private let time = ContinuousClock.now
    private let cpu = Result { try OwnUsage.cpuMicroseconds() }

    var elapsed: Duration { ContinuousClock.now - time }

    func cpuMicroseconds() throws -> Double { try OwnUsage.cpuMicroseconds() - cpu.get() }
}
