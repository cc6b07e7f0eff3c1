import APNsFigures

/// Measures the APNs client and h2load with the same simulator, and fills the second table.
struct SendingBench: Sendable {
    let scale: SendingScale
    let runs: Int
    let carillon: CarillonSetup

    func table() async -> SendingTable {
        var table = SendingTable()
        do {
            let sender = try CarillonSender(scratch: carillon.scratch)
            let h2load = Result { () throws(NotMeasured) in try H2Load(scratch: carillon.scratch) }
            let simulator = try await SimulatedAPNs.start(carillon.executable, carillon.scratch)
            let duel = SendingDuel(simulator: simulator, carillon: sender, h2load: h2load, runs: runs)
            await speed(duel, &table)
            await windows(duel, &table)
            await standstill(simulator, sender, &table)
            await simulator.process.stop()
        } catch {
            say("not measured: \(error)")
            table.rows.append(.init(name: "sending to the simulator", carillon: .notMeasured("\(error)")))
        }
        return table
    }

    // MARK: Rows

    private func speed(_ duel: SendingDuel, _ table: inout SendingTable) async {
        let full = await duel.run("500 in flight", SendingLoad(cold: scale.cold, warm: scale.warm))
        let some = await duel.run("64 in flight", SendingLoad(inFlight: 64, cold: scale.cold, warm: scale.warm))
        let alone = await duel.run(
            "1 in flight", SendingLoad(inFlight: 1, cold: scale.coldAlone, warm: scale.warmAlone))
        let batch = await duel.run(
            "one batch call", SendingLoad(isBatch: true, cold: scale.cold, warm: scale.warm), withH2Load: false)
        func row(
            _ name: String, _ outcome: SendingDuel.Outcome, _ path: KeyPath<SendingResult, Double>, aim: String = ""
        ) -> SendingTable.Row {
            .init(name: name, carillon: outcome.carillon.figure(path), h2load: outcome.h2load.figure(path), aim: aim)
        }
        func ownRow(
            _ name: String, _ outcome: SendingDuel.Outcome, _ path: KeyPath<SendingResult, Double>, aim: String = ""
        ) -> SendingTable.Row {
            .init(name: name, carillon: outcome.carillon.figure(path), aim: aim)
        }
        // The batch call is compared with the same requests of h2load.
        let batchBesides = SendingDuel.Outcome(carillon: batch.carillon, h2load: full.h2load)
        table.rows += [
            row(
                "pushes per second, one connection, 500 in flight", full, \.perSecond,
                aim: "above warm Pushy (41,000–51,000, known from elsewhere)"),
            ownRow(
                "the same, the first \(Figure.text(Double(scale.cold))) of a new process, connecting included", full,
                \.coldPerSecond, aim: "no slower than warm"),
            row("the same, warm, 64 in flight", some, \.perSecond),
            row("the same, warm, 1 in flight", alone, \.perSecond),
            row("the same, warm, by the batch call (encoded once), 500 in flight", batchBesides, \.perSecond),
            row("sender's CPU per push, 500 in flight, µs", full, \.cpuMicroseconds, aim: "≤ 12"),
            ownRow(
                "the same, the first \(Figure.text(Double(scale.cold))) of a new process", full, \.coldMicroseconds),
            row("the same, warm, 64 in flight", some, \.cpuMicroseconds),
            row("the same, warm, 1 in flight", alone, \.cpuMicroseconds),
            row("the same, warm, by the batch call (encoded once), 500 in flight", batchBesides, \.cpuMicroseconds),
            row("simulator's CPU per push, 500 in flight, µs", full, \.simulatorMicroseconds),
            row(
                "from making the client (h2load: connecting) until the first push is answered, ms", alone,
                \.firstMilliseconds),
            row("steady header block, bytes", full, \.headerBlockBytes, aim: "≤ 110"),
        ]
    }

    private func windows(_ duel: SendingDuel, _ table: inout SendingTable) async {
        let conditions = SimulatedAPNs.Conditions(roundTripMilliseconds: 50)
        let payload = 200
        // The number of pushes per second that the window of a connection allows with this round trip.
        let allowed =
            Double(conditions.connectionWindow) / Double(payload)
            / (Double(conditions.roundTripMilliseconds) / 1000)
        for connections in scale.pools {
            let total = allowed * Double(connections)
            let outcome = await duel.run(
                "64 KiB window, 50 ms, \(connections) connections",
                SendingLoad(
                    connections: connections, inFlight: connections * 1000, isBatch: true, payloadBytes: payload,
                    cold: Int(total * scale.windowSeconds.before), warm: Int(total * scale.windowSeconds.measured)),
                under: conditions)
            table.rows.append(
                .init(
                    name: "pushes of 200 bytes per second, 64 KiB window, 50 ms of delay, a pool of \(connections)",
                    carillon: outcome.carillon.figure(\.perSecond), h2load: outcome.h2load.figure(\.perSecond),
                    aim: "\(Figure.text(total)), which the window allows"))
        }
    }

    private func standstill(
        _ simulator: SimulatedAPNs, _ sender: CarillonSender, _ table: inout SendingTable
    ) async {
        var stalls = Runs<Figures.Stall>(values: [])
        var crowds = Runs<Figures.Crowd>(values: [])
        do {
            try await simulator.setConditions(.init(connectionWindow: 0))
            for run in 1...runs {
                say("Carillon, a service that reads nothing, run \(run)")
                stalls.values.append(try await sender.stall(offering: scale.offered, to: simulator))
                crowds.values.append(try await sender.crowd(offering: scale.crowd, to: simulator))
            }
            try await simulator.setConditions(.init())
        } catch {
            say("not measured: \(error)")
            stalls.fault = NotMeasured("\(error)")
            crowds.fault = stalls.fault
        }
        let offered = Figure.text(Double(scale.offered))
        let crowd = Figure.text(Double(scale.crowd))
        let bound = Figure.text(Double(crowds.values.first?.bound ?? 0))
        table.rows += [
            .init(
                name: "memory: growth until \(offered) pushes were offered by the batch call to a service that reads "
                    + "nothing, MiB",
                carillon: stalls.figure(\.growth), aim: "flat"),
            .init(name: "the same, the most at any time, MiB", carillon: stalls.figure(\.growthAtMost), aim: "flat"),
            .init(
                name: "of \(crowd) pushes by a call each to such a service, refused with `queueFull`",
                carillon: crowds.figure(\.refusedCount), aim: "all beyond \(bound)"),
        ]
        table.notes.append(
            "Of the \(offered), \(stalls.text(\.answeredCount)) were answered before the service stood still; the rest was given "
                + "up in time. Each push that waited by a call of its own held \(crowds.text(\.waitingKiB)) KiB, with its task."
        )
    }
}

extension Figures.Stall {
    fileprivate var growth: Double { Double(residentAfter - residentBefore) / 1_048_576 }
    fileprivate var growthAtMost: Double { Double(residentAtMost - residentBefore) / 1_048_576 }
    fileprivate var answeredCount: Double { Double(answered) }
}

extension Figures.Crowd {
    fileprivate var refusedCount: Double { Double(refused) }
    fileprivate var waitingKiB: Double { Double(residentAfter - residentBefore) / 1024 / Double(max(1, waiting)) }
}

extension Runs {
    fileprivate func text(_ path: KeyPath<Value, Double>) -> String { figure(path).median.map(Figure.text) ?? "–" }
}
