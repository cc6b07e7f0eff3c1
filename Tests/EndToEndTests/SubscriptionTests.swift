import CarillonAPNsSimulator
import CarillonBasics
import CarillonClient
import Foundation
import Synchronization
import TestSupport
import Testing

/// The server watches for a phone: the client library, the real executable, and a simulator of Apple's service.
@Suite(.timeLimit(.minutes(5)))
struct SubscriptionTests {
    private static func open(_ world: PushWorld) async throws -> String {
        let file = world.server.directory + "/rules.json"
        try Data(#"{"items":[{"pattern":"stock.*","open":true}]}"#.utf8).write(to: URL(fileURLWithPath: file))
        let at = ["--server", world.server.address, "--key", world.admin]
        _ = try await run(["items", "rules", "set", LiveServer.app, file] + at)
        let lines = try await run(["keys", "create", "--role", "sender", "--app", LiveServer.app, "--json"] + at).lines
        struct Made: Decodable { var secret: String }
        return try JSONDecoder().decode(Made.self, from: Data((lines.last ?? "").utf8)).secret
    }

    private static func publish(_ price: String, _ world: PushWorld, _ sender: String) async throws {
        _ = try await run(
            ["items", "publish", "stock.ACME", "price=\(price)", "--server", world.server.address, "--key", sender])
    }

    private static func alert(_ key: String?, above price: String) -> NotificationSubscription {
        var format = NotificationFormat(title: "${item}", body: "now at ${{ price | number(2) }}")
        format.badge = .automatic
        return NotificationSubscription(
            items: ["stock.ACME"], fields: ["price"], format: format, trigger: "price > \(price)", key: key)
    }

    private static func shown(_ simulator: APNsSimulator, _ token: String) -> [JSONValue] {
        (simulator.device(token, in: .production)?.shown ?? []).compactMap { JSONValue(parsing: Array($0.payload)) }
    }

    @Test
    func `a price crosses while the app is away, and one push is sent, also across kills; it is armed anew and fires again`()
        async throws
    {
        let world = try await PushWorld()
        let sender = try await Self.open(world)
        let simulator = world.simulator
        try world.book("00ff")
        let alert = Self.alert("acme", above: "100.0")
        do {
            let client = try world.client()
            try await client.device.setToken("00ff")
            try client.device.subscriptions.subscribe(alert)
            #expect(alert.status == .active, "it waits until there is a device")
            try client.start()
            try await eventually { client.device.isRegistered && alert.status == .subscribed }
            #expect(alert.subscriptionID != nil && alert.actualTriggerExpression == "price > 100.0")
            await client.stop()
        }
        try await Self.publish("99.5", world, sender)
        _ = try await world.server.whileStopped(signal: SIGKILL) { _ in }
        try await Self.publish("100.5", world, sender)
        try await eventually { Self.shown(simulator, "00ff").count == 1 }
        let push = try #require(Self.shown(simulator, "00ff").first)
        #expect(push["aps"]?["alert"]?["title"] == .string("stock.ACME"))
        #expect(push["aps"]?["alert"]?["body"] == .string("now at 100.50"))
        #expect(push["aps"]?["badge"] == .integer(1))
        #expect(push["carillon"]?["key"] == .string("acme"))
        _ = try await world.server.whileStopped(signal: SIGKILL) { _ in }
        try await Self.publish("101", world, sender)
        // Another run of the app finds the server's set.
        let again = try world.client("app")
        try again.start()
        try await eventually { again.device.subscriptions.find(key: "acme")?.isTriggered == true }
        let found = try #require(again.device.subscriptions.find(key: "acme"))
        #expect(found.subscriptionID == alert.subscriptionID && found.notificationFormat == alert.notificationFormat)
        #expect(Self.shown(simulator, "00ff").count == 1)
        // Armed anew, its condition is true and it fires at once; the newer firing replaces the shown one.
        try again.device.subscriptions.change(found, trigger: "price > 100.9")
        try await eventually { Self.shown(simulator, "00ff").last?["aps"]?["badge"] == .integer(2) }
        #expect(Self.shown(simulator, "00ff").last?["aps"]?["alert"]?["body"] == .string("now at 101.00"))
        again.device.subscriptions.unsubscribeAll(.triggered)
        try await eventually { !found.isActive && again.device.subscriptions.all().isEmpty }
        await again.stop()
    }

    @Test func `a declared set is the set of the server, over launches and without duplicates`() async throws {
        let world = try await PushWorld()
        let sender = try await Self.open(world)
        _ = sender
        let client = try world.client()
        try client.start()
        // Before there is a device.
        let first = ["a", "b", "c"].map { Self.alert($0, above: "100.0") }
        try client.device.subscriptions.declare(first)
        #expect(first.allSatisfy { $0.status == .active })
        try await client.channel("c").ensureOpen()
        try await eventually { first.allSatisfy(\.isSubscribed) }
        let ids = Set(first.map(\.subscriptionID))
        let loose = Self.alert(nil, above: "1000.0")
        try client.device.subscriptions.subscribe(loose)
        try await eventually { loose.isSubscribed }
        let second = ["b", "c", "d"].map { Self.alert($0, above: $0 == "c" ? "50.0" : "100.0") }
        try client.device.subscriptions.declare(second)
        try await eventually { second.allSatisfy(\.isSubscribed) && !first[0].isActive }
        #expect(ids.contains(second[0].subscriptionID) && ids.contains(second[1].subscriptionID))
        #expect(second[1].actualTriggerExpression == "price > 50.0")
        try await eventually { client.device.subscriptions.all().count == 4 }
        #expect(loose.isSubscribed)
        await client.stop()
    }

    private final class Received: Sendable {
        private let firings = Mutex<[SubscriptionFiring]>([])
        var all: [SubscriptionFiring] { firings.withLock { $0 } }
        func append(_ firing: SubscriptionFiring) { firings.withLock { $0.append(firing) } }
    }

    @Test func `an app that shows firings is notified on its connection, and no push is sent`() async throws {
        let world = try await PushWorld()
        let sender = try await Self.open(world)
        let simulator = world.simulator
        try world.book("00aa")
        let client = try PushClient(
            configuration: .init(
                server: world.server.address, app: LiveServer.app, clientKey: world.clientKey,
                storageDirectory: world.server.directory + "/app", receivesFirings: true))
        try await client.device.setToken("00aa")
        try client.start()
        try await client.channel("c").ensureOpen()
        try await eventually { client.device.isRegistered }
        let alert = Self.alert("acme", above: "100.0")
        try client.device.subscriptions.subscribe(alert)
        try await eventually { alert.isSubscribed }
        let received = Received()
        let firings = client.device.firings
        // Each is acknowledged when the loop requests the next one.
        let reading = Task { for await firing in firings { received.append(firing) } }
        try await Self.publish("100.25", world, sender)
        try await eventually { received.all.count == 1 }
        let firing = try #require(received.all.first)
        #expect(firing.key == "acme" && firing.item == "stock.ACME" && firing.subscriptionID == alert.subscriptionID)
        #expect(firing.notification.body == "now at 100.25")
        #expect(alert.isTriggered)
        let device = try #require(client.deviceID)
        let arguments = ["devices", "show", device, "--server", world.server.address, "--key", world.admin, "--json"]
        try await eventually { try await run(arguments).lines.last?.contains(#""waiting":0"#) == true }
        reading.cancel()
        await reading.value
        #expect(Self.shown(simulator, "00aa").isEmpty)
        await client.stop()
    }
}
