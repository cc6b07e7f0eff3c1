import CarillonBasics
import CarillonCore
import CarillonWire
import Testing

@testable import CarillonServer

/// Two homes with one device each, and open items.
struct ItemsOfTwoHomes {
    let homes: TwoHomes
    /// The devices of the homes, in their order.
    let devices: [Device]

    init(_ settings: StoreSettings = StoreSettings(), items: ItemEngine.Limits = .init()) async throws {
        homes = try await TwoHomes(settings, items: items)
        devices = [try await homes.device(at: 0), try await homes.device(at: 1)]
        try await setRules()
    }

    /// - Parameter idleSeconds: The time after which an item without updates and subscriptions is deleted; nil for never.
    func setRules(idleSeconds: Int? = nil) async throws {
        var rule: [JSONValue.Member] = [
            .init(name: "pattern", value: .string("*")), .init(name: "open", value: .bool(true)),
        ]
        if let idleSeconds { rule.append(.init(name: "idleSeconds", value: .integer(idleSeconds))) }
        let rules = try ItemRules(.object([.init(name: "items", value: .array([.object(rule)]))]))
        try await homes.domains[0].items.setRules(rules, of: devices[0].app)
    }

    /// Makes a subscription at the home of its device.
    @discardableResult
    func subscribe(
        _ place: Int, _ items: [ItemKey], _ trigger: String? = "price > 10.0",
        _ policy: SubscriptionMachine.Policy = .once, pace: FiringPace? = nil, key: String? = nil
    ) async throws -> Subscription {
        let format = try NotificationFormat(.object([.init(name: "title", value: .string("${price}"))]))
        return try await homes.domains[place].subscriptions.put(
            .init(
                items: items.map(\.name), fields: ["price", "a", "b"], trigger: trigger, format: format, policy: policy,
                pace: pace, key: key),
            of: devices[place], from: nil
        ).subscription
    }

    /// Publishes a price at the home of the item.
    func publish(_ price: Double, to item: ItemKey) async throws {
        let place = TwoHomes.place(of: Shard(of: item.app, item: item.name.text))
        _ = try await homes.domains[place].items.publish(
            [WrittenField("price", .number(String(price)))], to: item.name, of: item.app)
    }

    /// The titles of the notifications that wait for the device of a home.
    func titles(_ place: Int) async throws -> [String] {
        try await homes.waiting(for: devices[place]).compactMap { envelope in
            guard case .string(let title)? = envelope.fired?.notification["title"] else { return nil }
            return title
        }
    }

    /// The number of subscriptions that the engine of a home watches.
    func watches(_ place: Int) async -> Int { await homes.domains[place].itemEngine.population.watches }
}
