extension Bench {
    /// Measures services between apps: calls between clients, the load of the server alone, and the search among many
    /// devices.
    func services(_ table: inout Table) async {
        let calls = await runs("calls of services between two clients") {
            try await ServiceCallMeasurement(scale: scale, setup: carillon).measure()
        }
        let load = await runs("requests of services, and replies") {
            try await ServiceLoadMeasurement(scale: scale, setup: carillon).measure()
        }
        let found = await runs("looking for services among \(scale.serviceProviders) devices") {
            try await ServiceDiscoveryMeasurement(scale: scale, setup: carillon).measure()
        }
        func row(_ name: String, _ figure: Figure) -> Row {
            Row(group: .services, name: name, carillon: figure, nchan: .absent)
        }
        let unfinished = Figure.text(Double(scale.servicesUnfinished))
        let providers = Figure.text(Double(scale.serviceProviders))
        table.rows += [
            row(
                "call of a service by one client to another, sealed and on disk: 50th percentile, ms", calls.figure(\.median)
            ),
            row("the same, 99th percentile, ms", calls.figure(\.ninetyNinth)),
            row(
                "the same with \(ServiceCallMeasurement.inFlight) in flight, calls per second",
                calls.figure(\.callsPerSecond)),
            row("requests of services with their replies per second, the server alone", load.figure(\.requestsPerSecond)),
            row("the same, server's CPU for each, µs", load.figure(\.cpuMicroseconds)),
            row("of \(unfinished) requests unfinished at once, those that got their result", load.figure(\.finished)),
            row("the same, from the first request until the last result, s", load.figure(\.seconds)),
            row("who provides a service, among \(providers) providers: 50th percentile, ms", found.figure(\.median)),
            row("the same, 99th percentile, ms", found.figure(\.ninetyNinth)),
        ]
        table.notes.append(
            "With \(ServiceCallMeasurement.inFlight) calls of services in flight, both clients together kept "
                + "\(calls.share(\.clientShare)) of a core busy, the server \(calls.share(\.serverShare)); against the server "
                + "alone the load kept \(load.share(\.loadShare)) of one busy.")
    }

    private func runs<Value: Sendable>(_ what: String, _ measure: () async throws -> Value) async -> Runs<Value> {
        var values: [Value] = []
        do {
            for run in 1...scale.runs {
                say("\(what), run \(run)")
                values.append(try await measure())
            }
            return Runs(values: values)
        } catch {
            say("not measured: \(error)")
            return Runs(values: [], fault: NotMeasured("\(error)"))
        }
    }
}
