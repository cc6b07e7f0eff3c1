import CarillonBasics
import CarillonCore
import CarillonExpression
import CarillonWire
import Logging
import NIOPosix
import Testing

@testable import CarillonServer

/// An app, a device of it, and the parts of a process over its store.
struct EngineWorld {
    let store: any Store
    let domain: HomeDomain
    let device: Device
    let item: ItemKey

    init(
        _ store: any Store, rateLimits: RateLimits.Settings = .init(), limits: ItemEngine.Limits = .init(),
        ticks: TickSource = .system
    ) async throws {
        self.store = store
        domain = try await HomeDomain(
            store: store, addresses: PublicURLs("https://push.example.com"),
            scheduler: .on(MultiThreadedEventLoopGroup.singleton),
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }), rateLimits: rateLimits,
            itemLimits: limits, ticks: ticks)
        let app = try #require(AppID("com.example.app"))
        if let known = try await domain.devices.list(app: app, after: nil, limit: 1).first {
            device = known.device
        } else {
            _ = try await domain.apps.create(app)
            device = try await domain.devices.register(app: app).device
            let rules = try ItemRules(
                .object([
                    .init(
                        name: "items",
                        value: .array([
                            .object([
                                .init(name: "pattern", value: .string("*")), .init(name: "open", value: .bool(true)),
                            ])
                        ]))
                ]))
            try await domain.items.setRules(rules, of: device.app)
        }
        item = ItemKey(app: device.app, name: try #require(ItemName("i")))
    }

    /// - Parameters:
    ///   - other: Another device than the first one; nil for the first one.
    ///   - item: Another item than the first one; nil for the first one.
    func subscribe(
        _ trigger: String?, _ policy: SubscriptionMachine.Policy = .once, key: String? = nil, of other: Device? = nil,
        on item: ItemKey? = nil
    ) async throws -> Subscription {
        let format = try NotificationFormat(.object([.init(name: "title", value: .string("${price}"))]))
        return try await domain.subscriptions.put(
            .init(
                items: [(item ?? self.item).name], fields: ["price"], trigger: trigger, format: format, policy: policy,
                key: key),
            of: other ?? device, from: nil
        ).subscription
    }

    func publish(_ price: Double) async throws {
        _ = try await domain.items.publish(
            [WrittenField("price", .number(String(price)))], to: item.name, of: device.app)
    }

    /// The state after a kill of a process behind an update's commit.
    func leave(_ price: Double, version: Int64) async throws {
        var state = ItemState(.merge)
        state.apply(
            .init(["price": ItemValue(.double(price), digits: String(price))], at: domain.time.now()))
        let targets = try await store.serials(of: device.serial).map {
            Firing.Target(subscription: $0, revision: 1)
        }
        _ = try await store.commitItem(
            ItemCommit(
                key: item, item: StoredItem(state: state, version: version),
                firings: [Firing(item: item.name, app: item.app, state: state, targets: targets)]))
    }

    func settle() async throws {
        while await !domain.itemEngine.isIdle { try await Task.sleep(for: .milliseconds(2)) }
        await domain.runtime.inbox.flush()
    }

    func titles() async throws -> [String] {
        try await settle()
        let waiting = try await store.waiting(
            device: device.serial, after: 0, limit: 10_000, bytes: 1 << 30, at: domain.time.now())
        return (waiting ?? []).compactMap { envelope in
            guard case .string(let title)? = envelope.fired?.notification["title"] else { return nil }
            return title
        }
    }
}
