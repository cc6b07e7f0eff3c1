import Foundation
import NIOCore

/// Starts the servers, runs the measurements, and fills the table.
struct Bench: Sendable {
    let scale: Scale
    let carillon: CarillonSetup
    /// Nchan, or the reason why it cannot be measured.
    let nchan: Result<NchanSetup, NotMeasured>
    let wanted: Set<RowGroup>

    func fill(_ table: inout Table) async {
        if wants(.memory, .connects) { await connections(&table) }
        if wants(.registration) { await registration(&table) }
        if wants(.registry) { await registry(&table) }
        if wants(.latency) { await latency(&table) }
        if wants(.offline, .cpu) { await offline(&table) }
        if wants(.crowd) { await crowd(&table) }
        if wants(.live, .cpu) { await live(&table) }
        if wants(.catchUp) { await catchUp(&table) }
        if wants(.restart) { await restart(&table) }
        if wants(.wakes) { await wakes(&table) }
        if wants(.expressions) { expressions(&table) }
        if wants(.items) { await items(&table) }
        if wants(.updates) { await updates(&table) }
        if wants(.attachments) { await attachments(&table) }
        if wants(.services) { await services(&table) }
        if wants(.apns) {
            table.sending = await SendingBench(scale: scale.sending, runs: scale.runs, carillon: carillon).table()
        }
        table.rows = RowGroup.allCases.filter(wanted.contains).flatMap { group in
            table.rows.filter { $0.group == group }
        }
    }

    private func wants(_ groups: RowGroup...) -> Bool { !wanted.isDisjoint(with: groups) }

    // MARK: Rows

    private func connections(_ table: inout Table) async {
        let measurement = ConnectionMeasurement(scale: scale)
        let count = Figure.text(Double(scale.connections))
        let sessions = await carillonRuns("sessions", devices: scale.connections) { try await measurement.measure($0) }
        let own = await nchanRuns("connections, a channel each", { try await $0.start() }) {
            try await measurement.measure($0)
        }
        let bare = await carillonRuns("anonymous sockets", devices: 0, isAnonymous: true) {
            try await measurement.measure($0)
        }
        let shared = await nchanRuns("connections, one channel", { try await $0.start(isShared: true) }) {
            try await measurement.measure($0)
        }
        table.rows += [
            Row(
                group: .memory, name: "memory per idle connection of \(count), registered session (Nchan: own channel), KiB",
                carillon: sessions.figure(\.memoryKiB), nchan: own.figure(\.memoryKiB)),
            Row(
                group: .memory, name: "memory per idle connection of \(count), anonymous hello (Nchan: shared channel), KiB",
                carillon: bare.figure(\.memoryKiB), nchan: shared.figure(\.memoryKiB)),
            Row(
                group: .connects, name: "connections per second, registered session (Nchan: own channel)",
                carillon: sessions.figure(\.connectsPerSecond), nchan: own.figure(\.connectsPerSecond)),
            Row(
                group: .connects, name: "connections per second, anonymous hello (Nchan: shared channel)",
                carillon: bare.figure(\.connectsPerSecond), nchan: shared.figure(\.connectsPerSecond)),
        ]
        if wanted.contains(.connects) {
            table.notes.append(
                "While connecting, the load kept \(sessions.share(\.loadShare)) of a core busy against Carillon, "
                    + "\(own.share(\.loadShare)) against Nchan.")
        }
    }

    private func latency(_ table: inout Table) async {
        let measurement = LatencyMeasurement(scale: scale)
        let ours = await carillonRuns("one message at a time", devices: 1) { try await measurement.measure($0) }
        let theirs = await nchanRuns("one message at a time", { try await $0.start() }) {
            try await measurement.measure($0)
        }
        let lateMeasurement = LatencyMeasurement(scale: scale, acknowledgesAfter: .milliseconds(20))
        let late = await carillonRuns("one message at a time, acknowledged late", devices: 1) {
            try await lateMeasurement.measure($0)
        }
        func row(_ name: String, _ path: KeyPath<LatencyMeasurement.Result, Double>) -> Row {
            Row(group: .latency, name: name, carillon: ours.figure(path), nchan: theirs.figure(path))
        }
        func lateRow(_ name: String, _ path: KeyPath<LatencyMeasurement.Result, Double>) -> Row {
            Row(group: .latency, name: name, carillon: late.figure(path), nchan: .absent)
        }
        table.rows += [
            row("one message to one live device, until received: 50th percentile, ms", \.frameMedian),
            row("the same, 99th percentile, ms", \.frame99),
            row("the same, until the sender is answered: 50th percentile, ms", \.answerMedian),
            row("the same, 99th percentile, ms", \.answer99),
            row("server's CPU for each, µs", \.cpuMicroseconds),
            row("server's waits (voluntary context switches) for each", \.waits),
            lateRow(
                "one message to a live device that acknowledges 20 ms later, until the sender is answered: 50th percentile, ms",
                \.answerMedian),
            lateRow("the same, 99th percentile, ms", \.answer99),
        ]
        table.notes.append(
            "One at a time, Carillon answered \(ours.share(\.acknowledgedShare)) of the messages as acknowledged by "
                + "the app, the rest as written to disk.")
    }

    private func offline(_ table: inout Table) async {
        let measurement = AcceptMeasurement(scale: scale)
        let count = scale.offlineMessages
        let ours = await carillonRuns("messages to absent devices", devices: scale.offlineDevices) { server in
            let result = try await measurement.measure(server, devices: scale.offlineDevices)
            let waiting = try await server.waitingCount()
            guard waiting == count else { throw NotMeasured("\(waiting) messages wait of \(count) that were accepted") }
            return result
        }
        let metered = await carillonRuns(
            "messages to absent devices, with metrics", devices: scale.offlineDevices, withMetrics: true
        ) { try await measurement.measure($0, devices: scale.offlineDevices) }
        let theirs = await nchanRuns("messages without subscribers", { try await $0.start() }) {
            try await measurement.measure($0, devices: scale.offlineDevices)
        }
        table.rows += [
            Row(
                group: .offline, name: "messages accepted per second for absent devices, on disk (Nchan: in memory)",
                carillon: ours.figure(\.messagesPerSecond), nchan: theirs.figure(\.messagesPerSecond)),
            Row(
                group: .cpu, name: "server's CPU per message accepted for an absent device, on disk (Nchan: in memory), µs",
                carillon: ours.figure(\.cpuMicroseconds), nchan: theirs.figure(\.cpuMicroseconds)),
            Row(
                group: .cpu, name: "the same with --metrics-listen, µs", carillon: metered.figure(\.cpuMicroseconds),
                nchan: .absent),
        ]
        if wanted.contains(.offline) {
            table.notes.append(
                "Sending to absent devices, the load kept \(ours.share(\.loadShare)) of a core busy against Carillon, "
                    + "\(theirs.share(\.loadShare)) against Nchan.")
        }
    }

    private func registration(_ table: inout Table) async {
        var rates: [Double] = []
        var fault: NotMeasured?
        do {
            for run in 1...scale.runs {
                say("registering, run \(run)")
                defer { carillon.scratch.remove("data") }
                rates.append(try await carillon.registering(scale.registrations, data: "data").perSecond)
            }
        } catch {
            fault = NotMeasured("\(error)")
            say("not measured: \(error)")
        }
        table.rows.append(
            Row(
                group: .registration, name: "devices registered per second, each with a channel, on disk",
                carillon: fault.map { .notMeasured($0.reason) } ?? .runs(rates), nchan: .absent))
    }

    private func registry(_ table: inout Table) async {
        let measurement = RegistryMeasurement(scale: scale, setup: carillon)
        var results: [RegistryMeasurement.Result] = []
        var fault: NotMeasured?
        do {
            for run in 1...scale.runs {
                say("registering \(scale.registryDevices) devices, run \(run)")
                results.append(try await measurement.measure())
            }
        } catch {
            fault = NotMeasured("\(error)")
            say("not measured: \(error)")
        }
        func row(_ name: String, _ values: [Double]) -> Row {
            Row(
                group: .registry, name: name, carillon: fault.map { .notMeasured($0.reason) } ?? .runs(values),
                nchan: .absent)
        }
        let many = Figure.text(Double(scale.registryDevices))
        table.rows += [
            row("devices with a push token registered per second, among 1000", results.map(\.amongFew)),
            row("the same among \(many)", results.map(\.amongMany)),
            row("devices per second that say among \(many) what they said before", results.map(\.unchanged)),
            row("bytes on disk for each of \(many)", results.map(\.bytesEach)),
            row("seconds until a server with \(many) devices is ready", results.map(\.start)),
        ]
    }

    private func expressions(_ table: inout Table) {
        let measurement = ExpressionMeasurement(scale: scale)
        do {
            let runs = try (1...scale.runs).map { _ in try measurement.measure() }
            for (index, first) in runs[0].enumerated() {
                let figure = Figure.runs(runs.map { $0[index].nanoseconds })
                table.rows.append(Row(group: .expressions, name: first.name, carillon: figure, nchan: .absent))
            }
        } catch {
            say("not measured: \(error)")
            table.rows.append(
                Row(group: .expressions, name: "conditions", carillon: .notMeasured("\(error)"), nchan: .absent))
        }
    }

    private func items(_ table: inout Table) async {
        let measurement = ItemMeasurement(scale: scale, setup: carillon)
        do {
            var runs: [[ItemMeasurement.Result]] = []
            for run in 1...scale.runs {
                say("items and what waits on them, run \(run)")
                runs.append(try await measurement.measure())
            }
            for (index, first) in runs[0].enumerated() {
                table.rows.append(
                    Row(group: .items, name: first.name, carillon: .runs(runs.map { $0[index].value }), nchan: .absent))
            }
        } catch {
            say("not measured: \(error)")
            table.rows.append(Row(group: .items, name: "items", carillon: .notMeasured("\(error)"), nchan: .absent))
        }
    }

    private func updates(_ table: inout Table) async {
        let measurement = UpdateMeasurement(scale: scale, setup: carillon)
        do {
            var runs: [[UpdateMeasurement.Result]] = []
            for run in 1...scale.runs {
                say("updates for audiences of \(scale.updateDevices) devices, run \(run)")
                runs.append(try await measurement.measure())
            }
            for (index, first) in runs[0].enumerated() {
                table.rows.append(
                    Row(group: .updates, name: first.name, carillon: .runs(runs.map { $0[index].value }), nchan: .absent))
            }
        } catch {
            say("not measured: \(error)")
            table.rows.append(Row(group: .updates, name: "updates", carillon: .notMeasured("\(error)"), nchan: .absent))
        }
    }

    private func attachments(_ table: inout Table) async {
        let measurement = AttachmentMeasurement(setup: carillon)
        var (ours, theirs, sealing) = ([AttachmentMeasurement.Result](), [AttachmentMeasurement.Result](), [Double]())
        var fault: NotMeasured?
        do {
            try await measurement.makeFile()
            for run in 1...scale.runs {
                say("attachments, run \(run)")
                ours.append(try await measurement.measureCarillon())
                theirs.append(try await measurement.measureNginx())
                sealing.append(try await measurement.measureSealing())
            }
        } catch {
            fault = NotMeasured("\(error)")
            say("not measured: \(error)")
        }
        func row(_ name: String, _ ours: [Double], _ theirs: [Double]?) -> Row {
            Row(
                group: .attachments, name: name, carillon: fault.map { .notMeasured($0.reason) } ?? .runs(ours),
                nchan: fault == nil ? theirs.map { .runs($0) } ?? .absent : .absent)
        }
        table.rows += [
            row(
                "attachment of \(AttachmentMeasurement.mebibytes) MiB uploaded by curl, on disk (nginx's DAV, and synced), MiB/s",
                ours.map(\.upload), theirs.map(\.upload)),
            row("the same downloaded (nginx's static files), MiB/s", ours.map(\.download), theirs.map(\.download)),
            row("the same sealed by the client, MB/s", sealing, nil),
        ]
    }

    private func wakes(_ table: inout Table) async {
        let measurement = WakeMeasurement(scale: scale, setup: carillon)
        var results: [WakeMeasurement.Result] = []
        var sleepers: [(withTokens: Double, without: Double, wakes: Int)] = []
        var fault: NotMeasured?
        do {
            for run in 1...scale.runs {
                say("pushes to devices that sleep, run \(run)")
                results.append(try await measurement.measure())
                sleepers.append(try await measurement.measureSleepers())
            }
        } catch {
            fault = NotMeasured("\(error)")
            say("not measured: \(error)")
        }
        func row(_ name: String, _ values: [Double]) -> Row {
            Row(group: .wakes, name: name, carillon: fault.map { .notMeasured($0.reason) } ?? .runs(values), nchan: .absent)
        }
        table.rows += [
            row(
                "messages accepted, each with a wake that is decided, stored, sent and settled, per second",
                results.map(\.settledPerSecond)),
            row("the same, server's CPU for each, µs", results.map(\.cpuMicroseconds)),
            row("wakes per second out of a backlog, when credentials are set", results.map(\.drainedPerSecond)),
            row("the same, server's CPU for each, µs", results.map(\.drainCPU)),
            row(
                "server's CPU per message to \(scale.offlineDevices) sleeping devices with a push token, µs",
                sleepers.map(\.withTokens)),
            row("the same without push tokens, µs", sleepers.map(\.without)),
        ]
        if let wakes = sleepers.first?.wakes {
            table.notes.append(
                "\(Figure.text(Double(scale.offlineMessages))) messages to \(scale.offlineDevices) sleeping devices made \(wakes) wakes."
            )
        }
    }

    /// Measures the same load with few devices and with many, alternately.
    private func crowd(_ table: inout Table) async {
        let measurement = AcceptMeasurement(scale: scale)
        let counts = [scale.offlineDevices, scale.busyDevices]
        var results: [[AcceptMeasurement.Result]] = [[], []]
        var fault: NotMeasured?
        defer { for count in counts { carillon.scratch.remove("crowd-\(count)") } }
        do {
            var devices: [[Device]] = []
            for count in counts {
                say("registering \(count) devices")
                devices.append(try await carillon.register(count, data: "crowd-\(count)"))
            }
            for run in 1...scale.runs {
                for (index, count) in counts.enumerated() {
                    say("Carillon, messages among \(count) absent devices, run \(run)")
                    let server = try await carillon.start(data: "crowd-\(count)", devices: devices[index])
                    results[index].append(
                        try await stopping(server) { try await measurement.measure(server, devices: count) })
                }
            }
        } catch {
            fault = NotMeasured("\(error)")
            say("not measured: \(error)")
        }
        for (count, results) in zip(counts, results) {
            func row(_ name: String, _ path: KeyPath<AcceptMeasurement.Result, Double>) -> Row {
                Row(
                    group: .crowd, name: name,
                    carillon: fault.map { .notMeasured($0.reason) } ?? .runs(results.map { $0[keyPath: path] }),
                    nchan: .absent)
            }
            table.rows += [
                row("messages accepted per second among \(Figure.text(Double(count))) absent devices", \.messagesPerSecond),
                row("the same, server's CPU for each, µs", \.cpuMicroseconds),
            ]
        }
    }

    private func live(_ table: inout Table) async {
        let measurement = LiveMeasurement(scale: scale)
        let ours = await carillonRuns("messages to live devices", devices: scale.liveDevices) {
            try await measurement.measure($0)
        }
        let theirs = await nchanRuns("messages to subscribers", { try await $0.start() }) {
            try await measurement.measure($0)
        }
        table.rows += [
            Row(
                group: .live,
                name: "messages per second to live devices, acknowledged and recorded (Nchan: delivered, from memory)",
                carillon: ours.figure(\.messagesPerSecond), nchan: theirs.figure(\.messagesPerSecond)),
            Row(
                group: .cpu, name: "server's CPU per message delivered live, µs",
                carillon: ours.figure(\.cpuMicroseconds), nchan: theirs.figure(\.cpuMicroseconds)),
            Row(
                group: .cpu, name: "server's waits per message delivered live",
                carillon: ours.figure(\.waits), nchan: theirs.figure(\.waits)),
        ]
        if wanted.contains(.live) {
            table.notes.append(
                "Sending to live devices, Carillon answered \(ours.share(\.acknowledgedShare)) as acknowledged by the "
                    + "app, the rest as written to disk; the load kept \(ours.share(\.loadShare)) of a core busy "
                    + "against Carillon, \(theirs.share(\.loadShare)) against Nchan.")
        }
    }

    private func catchUp(_ table: inout Table) async {
        let measurement = CatchUpMeasurement(scale: scale)
        let ours = await carillonRuns("catching up", devices: scale.catchUpDevices) { server in
            try await measurement.fill(server)
            let rate = try await measurement.measure(server)
            let waiting = try await server.waitingCount()
            guard waiting == 0 else { throw NotMeasured("\(waiting) messages wait after all were acknowledged") }
            return rate
        }
        let theirs = await nchanRuns("catching up", { try await $0.start(fromOldest: true) }) { server in
            try await measurement.fill(server)
            return try await measurement.measure(server)
        }
        table.rows.append(
            Row(
                group: .catchUp,
                name: "catch-up, \(scale.catchUpDevices) devices with \(scale.catchUpEach) waiting each, messages per "
                    + "second, from disk and acknowledged (Nchan: from memory)",
                carillon: ours.figure(\.self), nchan: theirs.figure(\.self)))
    }

    private func restart(_ table: inout Table) async {
        let measurement = RestartMeasurement(scale: scale, setup: carillon)
        var killed: [RestartMeasurement.Result] = []
        var stopped: [RestartMeasurement.Result] = []
        var fault: NotMeasured?
        do {
            say("filling for the restart")
            var server = try await measurement.fill()
            for run in 1...scale.runs {
                say("restart, run \(run)")
                let afterKill = try await measurement.restart(server, after: SIGKILL)
                killed.append(afterKill.1)
                let afterStop = try await measurement.restart(afterKill.0, after: SIGTERM)
                stopped.append(afterStop.1)
                server = afterStop.0
            }
            await server.process.stop()
        } catch {
            fault = NotMeasured("\(error)")
            say("not measured: \(error)")
        }
        carillon.scratch.remove(RestartMeasurement.data)
        func row(_ name: String, _ results: [RestartMeasurement.Result], _ path: KeyPath<RestartMeasurement.Result, Double>)
            -> Row
        {
            Row(
                group: .restart, name: name,
                carillon: fault.map { .notMeasured($0.reason) } ?? .runs(results.map { $0[keyPath: path] }),
                nchan: .absent)
        }
        let count = Figure.text(Double(scale.restartEnvelopes))
        table.rows += [
            row("restart with \(count) waiting, after SIGKILL: until ready, s", killed, \.ready),
            row("the same, until a message was delivered, s", killed, \.delivered),
            row("restart with \(count) waiting, after a clean stop: until ready, s", stopped, \.ready),
            row("the same, until a message was delivered, s", stopped, \.delivered),
        ]
    }

    // MARK: Runs

    /// Measures Carillon several times, each time in a new process. The devices are registered before the process starts.
    private func carillonRuns<Value: Sendable>(
        _ what: String, devices count: Int, isAnonymous: Bool = false, withMetrics: Bool = false,
        _ measure: (CarillonUnderTest) async throws -> Value
    ) async -> Runs<Value> {
        var values: [Value] = []
        do {
            for run in 1...scale.runs {
                say("Carillon, \(what), run \(run)")
                defer { carillon.scratch.remove("data") }
                let devices = try await carillon.register(count, data: "data")
                let server = try await carillon.start(
                    data: "data", devices: devices, isAnonymous: isAnonymous, withMetrics: withMetrics)
                values.append(try await stopping(server) { try await measure(server) })
            }
            return Runs(values: values)
        } catch {
            return failed(error)
        }
    }

    private func nchanRuns<Value: Sendable>(
        _ what: String, _ start: (NchanSetup) async throws -> NchanPeer,
        _ measure: (NchanPeer) async throws -> Value
    ) async -> Runs<Value> {
        var values: [Value] = []
        do {
            let setup = try nchan.get()
            for run in 1...scale.runs {
                say("Nchan, \(what), run \(run)")
                let server = try await start(setup)
                values.append(try await stopping(server) { try await measure(server) })
            }
            return Runs(values: values)
        } catch {
            return failed(error)
        }
    }

    private func stopping<Value>(
        _ server: some PushServer, _ work: () async throws -> Value
    ) async throws -> Value {
        do {
            let value = try await work()
            await server.process.stop()
            return value
        } catch {
            await server.process.stop()
            throw error
        }
    }

    private func failed<Value>(_ error: any Error) -> Runs<Value> {
        say("not measured: \(error)")
        return Runs(values: [], fault: NotMeasured("\(error)"))
    }
}

/// Prints a progress message on standard error.
func say(_ text: String) {
    FileHandle.standardError.write(Data((text + "\n").utf8))
}

/// The results of a measurement's runs.
struct Runs<Value: Sendable>: Sendable {
    var values: [Value]
    var fault: NotMeasured?

    func figure(_ path: KeyPath<Value, Double>) -> Figure {
        if let fault { return .notMeasured(fault.reason) }
        return .runs(values.map { $0[keyPath: path] })
    }

    func share(_ path: KeyPath<Value, Double>) -> String {
        figure(path).median.map { "\(Int(($0 * 100).rounded())) %" } ?? "–"
    }
}
