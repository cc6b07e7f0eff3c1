import NIOCore

/// Measures service requests and their replies without the client library, so that only the server is measured: at full
/// speed, and with many unfinished requests.
struct ServiceLoadMeasurement: Sendable {
    let scale: Scale
    let setup: CarillonSetup

    struct Result: Sendable {
        /// Requests per second whose result the consumer has received.
        var requestsPerSecond: Double
        var cpuMicroseconds: Double
        var loadShare: Double
        /// How many of the unfinished requests received a result, and the time of the last one.
        var finished: Double
        var seconds: Double
    }

    private static let data = "service-load"
    /// The number of pairs, because a device can have at most 1,000 requests without a result.
    private static let pairCount = 20
    private static let room = 512

    func measure() async throws -> Result {
        let realm = try await ServiceRealm(setup, data: Self.data)
        defer { realm.remove() }
        return try await realm.serving { server in
            let pairs = try await makePairs(realm, server)
            let herd = SubscriberHerd(server.address) { ServicePair.subscription($0, of: pairs) }
            try await LoadLoop.run { herd.connect(2 * pairs.count, inFlight: 2 * pairs.count) }
            let result = try await measure(server, pairs, herd)
            try await LoadLoop.run { herd.close() }
            return result
        }
    }

    private func makePairs(_ realm: ServiceRealm, _ server: CarillonUnderTest) async throws -> [ServicePair] {
        let users = (0..<Self.pairCount).map { "user \($0)" }
        let consumers = try await realm.register(users, of: ServiceRealm.consumerApp, on: server)
        let providers = try await realm.register(users, of: ServiceRealm.providerApp, on: server)
        let pairs = try users.indices.map { index in
            try ServicePair(index, consumer: consumers[index], provider: providers[index])
        }
        let address = server.address
        try await LoadLoop.run {
            HTTPConnection.open(4, address).flatMap { connections in
                RequestPump.run(pairs.count, over: connections) {
                    pairs[$0].offer
                } check: { _, answer in
                    answer.status == 204
                }.always { _ in for connection in connections { connection.close() } }
            }
        }
        return pairs
    }

    private func measure(
        _ server: CarillonUnderTest, _ pairs: [ServicePair], _ herd: SubscriberHerd
    ) async throws -> Result {
        let warmUp = ServiceLoad.Plan(count: scale.serviceRequests / 20 + 100, room: Self.room)
        _ = try await run(warmUp, pairs, herd, server.address)
        let (before, ownCPU) = (try server.usage(), try ProcessUsage.ownMicroseconds())
        let busy = ServiceLoad.Plan(count: scale.serviceRequests, room: Self.room)
        let fast = try await run(busy, pairs, herd, server.address)
        let loadShare = (try ProcessUsage.ownMicroseconds() - ownCPU) / (fast.seconds * 1e6)
        // The last outcomes are written a little later, and are part of the cost.
        try await Task.sleep(for: .milliseconds(200))
        let used = try server.usage().cpuMicroseconds - before.cpuMicroseconds
        let most = scale.servicesUnfinished
        let crowd = try await run(
            ServiceLoad.Plan(count: most, room: most, answersLast: true), pairs, herd, server.address)
        try await check(server, pairs, herd, warmUp.count + busy.count + most)
        return Result(
            requestsPerSecond: Double(busy.count) / fast.seconds, cpuMicroseconds: used / Double(busy.count),
            loadShare: loadShare, finished: Double(crowd.finished), seconds: crowd.seconds)
    }

    private func run(
        _ plan: ServiceLoad.Plan, _ pairs: [ServicePair], _ herd: SubscriberHerd, _ address: SocketAddress
    ) async throws -> ServiceLoad {
        let count = 2 * scale.senders
        return try await LoadLoop.run {
            HTTPConnection.open(count, address).flatMap { connections in
                ServiceLoad(plan, pairs, over: connections).run(herd)
                    .always { _ in for connection in connections { connection.close() } }
            }
        }
    }

    /// Checks that no event arrived twice, and that no event is waiting.
    private func check(
        _ server: CarillonUnderTest, _ pairs: [ServicePair], _ herd: SubscriberHerd, _ count: Int
    ) async throws {
        try await Task.sleep(for: .seconds(1))
        let received = try await LoadLoop.run { LoadLoop.loop.makeSucceededFuture(herd.counts.reduce(0, +)) }
        guard received == 2 * count else { throw NotMeasured("\(received) frames came for \(count) requests") }
        let devices = pairs.flatMap { [$0.consumer, $0.provider] }
        let waiting = try await CarillonUnderTest(
            process: server.process, address: server.address, devices: devices
        ).waitingCount()
        guard waiting == 0 else { throw NotMeasured("\(waiting) requests and replies wait after all were acknowledged") }
    }
}
