/// Runs the same load with Carillon and with h2load alternately, with the same simulator.
struct SendingDuel: Sendable {
    let simulator: SimulatedAPNs
    let carillon: CarillonSender
    /// h2load, or the reason why it cannot be measured.
    let h2load: Result<H2Load, NotMeasured>
    let runs: Int

    struct Outcome: Sendable {
        var carillon = Runs<SendingResult>(values: [])
        var h2load = Runs<SendingResult>(values: [])
    }

    func run(
        _ what: String, _ load: SendingLoad, under conditions: SimulatedAPNs.Conditions = .init(),
        withH2Load: Bool = true
    ) async -> Outcome {
        var outcome = Outcome()
        for run in 1...runs {
            await add(to: &outcome.carillon, "Carillon, \(what), run \(run)", conditions) {
                try await carillon.push(load, to: simulator)
            }
            guard withH2Load else { continue }
            await add(to: &outcome.h2load, "h2load, \(what), run \(run)", conditions) {
                try await h2load.get().push(load, to: simulator)
            }
        }
        return outcome
    }

    private func add(
        to runs: inout Runs<SendingResult>, _ what: String, _ conditions: SimulatedAPNs.Conditions,
        _ push: () async throws -> SendingResult
    ) async {
        guard runs.fault == nil else { return }
        say(what)
        do {
            try await simulator.setConditions(conditions)
            runs.values.append(try await watched(push))
        } catch {
            say("not measured: \(error)")
            runs.fault = NotMeasured("\(error)")
        }
    }

    /// Adds the figures of the simulator, which must agree with those of the sender.
    private func watched(_ push: () async throws -> SendingResult) async throws -> SendingResult {
        let newest = try await simulator.connections().last?.number ?? 0
        let before = try ProcessUsage(of: simulator.process.pid)
        var result = try await push()
        let after = try ProcessUsage(of: simulator.process.pid)
        let connections = try await simulator.connections().filter { $0.number > newest }
        let accepted = connections.reduce(0) { $0 + $1.accepted }
        guard accepted == result.pushes else {
            throw NotMeasured("the simulator accepted \(accepted) pushes; the sender counts \(result.pushes)")
        }
        result.simulatorMicroseconds = (after.cpuMicroseconds - before.cpuMicroseconds) / Double(result.pushes)
        result.headerBlockBytes = Double(connections.last?.headerBlockBytes ?? 0)
        return result
    }
}
