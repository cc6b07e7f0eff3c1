import CarillonAPNsSimulator
import CarillonBasics
import CarillonClient
import Foundation
import NIOHTTP1
import TestSupport
import Testing

/// The faults of a token or of Apple's service, from end to end: the client library, the real executable, and a simulator.
@Suite(.timeLimit(.minutes(5)))
struct PushFaultTests {
    /// A client that has registered and left, and where its messages go.
    private func sleeper(_ token: String, _ world: PushWorld, _ state: String = "app") async throws -> (PushClient, String) {
        let client = try world.client(state)
        try await client.device.setToken(token)
        try client.start()
        let channel = try client.channel("orders")
        try await channel.ensureOpen()
        try await eventually { client.device.isRegistered }
        await client.stop()
        return (client, try #require(channel.endpoint))
    }

    /// Waits until the server reports this of the pushes of a message.
    private func pushes(of location: String, _ member: String, _ value: String, _ world: PushWorld) async throws {
        let path = "/v1/messages/\(location.split(separator: "/").last ?? "")"
        let wanted = "\"\(member)\":\"\(value)\""
        while try await !world.server.request(.GET, path, key: world.senderKey).text.contains(wanted) {
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    @Test func `a device that registers the token of another install receives it, and the other is suspended`() async throws
    {
        let world = try await PushWorld()
        try world.book("dd01")
        let (former, formerEndpoint) = try await sleeper("dd01", world, "former")
        let (latter, latterEndpoint) = try await sleeper("dd01", world, "latter")
        try await world.shows("\"token_taken\"", former.device)
        try await world.shows("\"registered\"", latter.device)
        #expect(former.device.deviceID != latter.device.deviceID)
        _ = try await world.server.send("for the former", to: formerEndpoint)
        let sent = try await world.server.send("for the latter", to: latterEndpoint)
        try await pushes(of: sent.location, "state", "handed", world)
        #expect(world.simulator.totals.requests == 1)
        // It receives its messages when it connects, and then reports its token: the token becomes its own again.
        try former.start()
        try await eventually { former.channels.first?.waitingMessages == 1 }
        await former.stop()
        try await world.shows("\"token_taken\"", latter.device)
    }

    @Test func `a token that one environment does not know is tried in the other, once`() async throws {
        let world = try await PushWorld()
        try await world.setCredentials("sandbox")
        try world.book("dd02", in: .sandbox)
        let (moved, endpoint) = try await sleeper("dd02", world, "moved")
        _ = try await world.server.send("one", to: endpoint)
        try await eventually { [simulator = world.simulator] in
            simulator.device("dd02", in: .sandbox)?.shown.count == 1
        }
        try await world.shows("\"sandbox\"", moved.device)
        try await world.shows("\"registered\"", moved.device)
        #expect(world.simulator.totals.requests == 2)
        let (lost, nowhere) = try await sleeper("dd03", world, "lost")
        _ = try await world.server.send("two", to: nowhere)
        try await world.shows("\"suspended\"", lost.device)
        #expect(world.simulator.totals.requests == 4)
    }

    @Test func `a token that was dead before it was registered is not dead for that`() async throws {
        let world = try await PushWorld()
        try world.book("dd04")
        let (client, endpoint) = try await sleeper("dd04", world)
        let before = Int64(Date().timeIntervalSince1970 * 1000) - 2 * 86_400_000
        world.simulator.changeDevice("dd04", in: .production) { $0.state = .unregistered(since: before) }
        let sent = try await world.server.send("one", to: endpoint)
        try await pushes(of: sent.location, "reason", "Unregistered", world)
        try await world.shows("\"registered\"", client.device)
    }

    @Test(arguments: [
        APNsSimulator.Fault.goAway(reason: nil, last: .before), .goAway(reason: nil, last: .this), .reset(.internalError),
        .answer(status: 200, .empty),
    ])
    func `a push survives what ends a connection or an answer`(fault: APNsSimulator.Fault) async throws {
        let world = try await PushWorld()
        try world.book("dd05")
        let (_, endpoint) = try await sleeper("dd05", world)
        try world.simulator.add(APNsSimulator.FaultRule(fault, times: 1))
        let sent = try await world.server.send("one", to: endpoint)
        try await pushes(of: sent.location, "state", "handed", world)
    }

    @Test func `an encrypted message travels in a payload of 4,096 bytes, and not of 4,097`() async throws {
        let world = try await PushWorld()
        try world.book("dd06")
        _ = try await run(
            [
                "apps", "alert", "set", LiveServer.app, "--title", "News", "--server", world.server.address, "--key",
                world.admin,
            ])
        let (_, endpoint) = try await sleeper("dd06", world)
        func payload(_ count: Int) async throws -> [UInt8] {
            let answer = try await world.server.request(
                .POST, endpoint, headers: ["TTL": "60", "Content-Encoding": "aes128gcm", "Urgency": "high"],
                bytes: Array(repeating: 7, count: count))
            #expect(answer.status == 201)
            try await pushes(of: try #require(answer.headers.first(name: "location")), "state", "handed", world)
            return try #require(world.simulator.device("dd06", in: .production)?.shown.last).payload
        }
        func characters(_ count: Int) -> Int { Base64URL.encode([UInt8](repeating: 7, count: count)).utf8.count }
        let promised = try await payload(2503)
        // Three bytes more make four characters more, one byte more two, and two three.
        let room = 4096 - promised.count + characters(2503)
        let size = (2503...4096).last { characters($0) <= room } ?? 0
        let largest = try await payload(size)
        #expect(largest.count == 4096 && JSONValue(parsing: largest)?["carillon"]?["body"] != nil)
        let tooLarge = try await payload(size + 1)
        #expect(tooLarge.count < 1000 && JSONValue(parsing: tooLarge)?["carillon"]?["body"] == nil)
        #expect(JSONValue(parsing: tooLarge)?["carillon"]?["message"] != nil)
    }
}
