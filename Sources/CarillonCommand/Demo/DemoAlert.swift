import CarillonAPNsSimulator
import CarillonBasics
import CarillonClient
import CarillonCore
import CarillonServer
import CarillonWire
import Foundation

/// The scenario of an item subscription: the app subscribes to a price and disconnects. The backend publishes prices, and the
/// phone shows a notification when the price crosses a limit.
struct DemoAlert {
    let client: PushClient
    let token: String
    let simulator: APNsSimulator
    let domain: HomeDomain
    let app: AppID
    let say: @Sendable (String) -> Void

    private static let item = "stock.ACME"

    func notify() async throws {
        guard let serial = try await domain.apps.serial(of: app), let item = ItemName(Self.item) else { return }
        let stocks: JSONValue = [
            "pattern": .string("stock.*"), "open": .bool(true), "fields": ["price": .string("double")],
        ]
        let rules: JSONValue = ["items": .array([stocks])]
        try await domain.items.setRules(try ItemRules(rules), of: serial)
        let alert = NotificationSubscription(
            items: [Self.item], fields: ["price"],
            format: NotificationFormat(title: "${item}", body: "now at ${{ price | currency(EUR) }}"),
            trigger: "price > 100.0", key: "acme-above-100")
        try await subscribe(alert)
        say("The app subscribed to the item \(Self.item), with the trigger price > 100.0. It sleeps again.")
        let began = ContinuousClock.now
        let before = shown.count
        for price in ["99.50", "100.50", "101.00"] {
            _ = try await domain.items.publish([WrittenField("price", .number(price))], to: item, of: serial)
            moment(began, "published     the backend publishes the price \(price)")
        }
        let push = try await nextPush(after: before)
        moment(began, "shown         Apple's push service received: \(String(decoding: push.payload, as: UTF8.self))")
        say("The subscription fired once. carillon subscriptions explain shows why, and the app can arm it again.")
    }

    private func subscribe(_ alert: NotificationSubscription) async throws {
        var events = alert.events.makeAsyncIterator()
        try client.start()
        try client.device.subscriptions.subscribe(alert)
        while let event = await events.next() {
            if case .subscriptionFailed(let error) = event { throw error }
            if alert.isSubscribed { break }
        }
        await client.stop()
    }

    private var shown: [APNsSimulator.DeliveredNotification] {
        simulator.device(token, in: .production)?.shown ?? []
    }

    private func nextPush(after count: Int) async throws -> APNsSimulator.DeliveredNotification {
        let deadline = ContinuousClock.now + .seconds(30)
        while ContinuousClock.now < deadline {
            if shown.count > count, let push = shown.last { return push }
            try await Task.sleep(for: .milliseconds(20))
        }
        throw CommandFault(ExitStatus.unreachable, "the simulated push service received nothing within 30 seconds")
    }

    private func moment(_ since: ContinuousClock.Instant, _ text: String) {
        say("  \(String(format: "%7.1f", (ContinuousClock.now - since) / .milliseconds(1))) ms  \(text)")
    }
}
