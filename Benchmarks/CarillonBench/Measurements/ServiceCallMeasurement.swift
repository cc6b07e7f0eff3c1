import CarillonClient

/// Measures service calls from one client to another in the same process: sealed, stored, answered, and opened.
struct ServiceCallMeasurement: Sendable {
    let scale: Scale
    let setup: CarillonSetup

    struct Result: Sendable {
        var median: Double
        var ninetyNinth: Double
        /// The rate with many calls under way, with the CPU use of both clients and of the server.
        var callsPerSecond: Double
        var clientShare: Double
        var serverShare: Double
    }

    static let inFlight = 64
    private static let data = "service-calls"
    private static let user = "ada"
    private static let echo = ServiceMethod(ServicePair.service, "1.0", "echo")
    private static let parameters: ServiceValue = [
        "to": ["ada@example.com", "bob@example.com"], "subject": "The figures of the third quarter", "count": 3,
        "isUrgent": false,
    ]

    func measure() async throws -> Result {
        let realm = try await ServiceRealm(setup, data: Self.data)
        defer { realm.remove() }
        return try await realm.serving { server in
            let provider = try await realm.client(of: Self.user, ServiceRealm.providerApp, on: server)
            let consumer = try await realm.client(of: Self.user, ServiceRealm.consumerApp, on: server)
            await provider.serviceProvider.handle(Self.echo) { ServiceReply($0.parameters) }
            try await provider.serviceProvider.offer(name: "Files", version: "1.0", [Self.echo])
            let address = try await find(by: consumer)
            let result = try await measure(consumer, address, server)
            await consumer.stop()
            await provider.stop()
            return result
        }
    }

    private func find(by consumer: PushClient) async throws -> ServiceApplication {
        let start = ContinuousClock.now
        while ContinuousClock.now - start < .seconds(20) {
            let found = try await consumer.serviceClient.providers(of: Self.echo.service)
            if let provider = found.first(where: \.isLive) { return provider.application }
            try await Task.sleep(for: .milliseconds(20))
        }
        throw NotMeasured("no live provider was found")
    }

    private func measure(
        _ consumer: PushClient, _ address: ServiceApplication, _ server: CarillonUnderTest
    ) async throws -> Result {
        for _ in 0..<scale.serviceCalls / 20 + 10 { try await Self.call(consumer, address) }
        var times: [Double] = []
        for _ in 0..<scale.serviceCalls {
            let start = nanoseconds()
            try await Self.call(consumer, address)
            times.append(Double(nanoseconds() - start) / 1e6)
        }
        times.sort()
        let each = scale.serviceCallsAtOnce / Self.inFlight
        let (before, ownCPU, start) = (try server.usage(), try ProcessUsage.ownMicroseconds(), nanoseconds())
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<Self.inFlight {
                group.addTask { for _ in 0..<each { try await Self.call(consumer, address) } }
            }
            try await group.waitForAll()
        }
        let microseconds = Double(nanoseconds() - start) / 1e3
        return Result(
            median: times[times.count / 2], ninetyNinth: times[times.count * 99 / 100],
            callsPerSecond: Double(Self.inFlight * each) * 1e6 / microseconds,
            clientShare: (try ProcessUsage.ownMicroseconds() - ownCPU) / microseconds,
            serverShare: (try server.usage().cpuMicroseconds - before.cpuMicroseconds) / microseconds)
    }

    private static func call(_ consumer: PushClient, _ address: ServiceApplication) async throws {
        let reply = try await consumer.serviceClient.call(echo, of: address, parameters)
        guard reply.value == parameters else { throw NotMeasured("a call had another result than its parameters") }
    }
}
