import CarillonBasics
import CarillonCore
import CarillonWire
import HTTPTypes
import TestStores
import Testing

@testable import CarillonServer

/// The owner whose quota of an item's limits a condition uses.
@Suite(.timeLimit(.minutes(5)))
struct ItemQuotaTests {
    private static func body(_ trigger: String, key: String? = nil) -> String {
        let fields = ["price", "name"] + (0..<8).flatMap { ["x\($0)", "y\($0)"] }
        let list = fields.map { "\"\($0)\"" }.joined(separator: ",")
        return #"{"items":["stock.ACME"],"fields":[\#(list)],"format":{"title":"x"},"trigger":"\#(trigger)""#
            + (key.map { #","key":"\#($0)""# } ?? "") + "}"
    }

    /// Each compares an expression of its own.
    private static func compared(_ number: Int) -> String { "x\(number / 8) + y\(number % 8) < 0.0" }

    private func subscribe(
        _ world: SubscriptionWorld, _ trigger: String, by device: String, key: String? = nil
    ) async throws -> RouteFixture.Answer {
        try await world.routes.request(.post, "/v1/device/subscriptions", key: device, Self.body(trigger, key: key))
    }

    private func signIn(_ user: String, _ id: String, _ world: SubscriptionWorld) async throws {
        let deviceID = try #require(DeviceID(id))
        let device = try #require(try await world.routes.store.device(deviceID))
        let userID = try #require(UserID(user))
        let request = RegistrationRequest.reports(DeviceProfile(), confirms: false, user: .signedIn(userID))
        _ = try await world.routes.store.changeRegistration(of: device.serial, at: .init(milliseconds: 1_700_000_000_000)) {
            _ in request
        }
    }

    @Test func `one device does not close an item to others, also after a restart`() async throws {
        let store = try await stores.open()
        let world = try await SubscriptionWorld(store: store)
        let other = try await world.routes.device()
        for number in 0..<50 {
            #expect(try await subscribe(world, Self.compared(number), by: world.device).status == 201)
        }
        var routes = world.routes
        for isRestarted in [false, true] {
            if isRestarted { routes = try await RouteFixture(store: store) }
            for number in 50..<60 {
                let refused = try await routes.request(
                    .post, "/v1/device/subscriptions", key: world.device, Self.body(Self.compared(number)))
                #expect(refused.status == 403 && refused.code == "trigger_forbidden")
                #expect(refused["detail"].contains("5 %") && refused["detail"].contains("50,"), "\(refused["detail"])")
            }
            for trigger in ["price > 105.0", Self.compared(60)] {
                let made = try await routes.request(
                    .post, "/v1/device/subscriptions", key: other.credential, Self.body(trigger, key: trigger))
                #expect([200, 201].contains(made.status))
            }
            // A change that uses nothing more needs no quota.
            let known = try await routes.request(
                .post, "/v1/device/subscriptions", key: world.device, Self.body("x0 + y0 < 7.0"))
            #expect(known.status == 201)
        }
    }

    @Test func `devices of a user have one quota together, and devices without a user each their own`() async throws {
        var limits = ItemEngine.Limits()
        limits.comparedPerItem = 100
        let world = try await SubscriptionWorld(itemLimits: limits)
        let devices = [try await world.routes.device(), try await world.routes.device(), try await world.routes.device()]
        for device in devices.prefix(2) { try await signIn("ada", device.id, world) }
        for number in 0..<5 {
            #expect(
                try await subscribe(world, Self.compared(number), by: devices[number % 2].credential).status == 201)
        }
        for device in devices.prefix(2) {
            #expect(try await subscribe(world, Self.compared(5), by: device.credential).code == "trigger_forbidden")
        }
        for (place, device) in [devices[2].credential, world.device].enumerated() {
            for number in 0..<5 {
                let trigger = Self.compared(10 + 5 * place + number)
                #expect(try await subscribe(world, trigger, by: device).status == 201)
            }
            #expect(try await subscribe(world, Self.compared(30), by: device).code == "trigger_forbidden")
        }
    }

    @Test func `expressions that several devices compare count for none of them, and for the item`() async throws {
        var limits = ItemEngine.Limits()
        limits.comparedPerItem = 20
        limits.quotaPercent = 25
        let world = try await SubscriptionWorld(itemLimits: limits)
        let other = try await world.routes.device().credential
        for start in stride(from: 0, to: 20, by: 5) {
            for number in start..<start + 5 {
                #expect(try await subscribe(world, Self.compared(number), by: world.device).status == 201)
            }
            if start < 15 {
                #expect(try await subscribe(world, Self.compared(21), by: world.device).code == "trigger_forbidden")
            }
            for number in start..<start + 5 {
                let trigger = Self.compared(number).replacing("0.0", with: "1.0")
                #expect(try await subscribe(world, trigger, by: other).status == 201)
            }
        }
        let full = try await subscribe(world, Self.compared(21), by: other)
        #expect(full.code == "trigger_forbidden" && full["detail"].contains("reached its limit"), "\(full["detail"])")
    }

    @Test func `a removed subscription returns its quota`() async throws {
        var limits = ItemEngine.Limits()
        limits.comparedPerItem = 40
        let world = try await SubscriptionWorld(itemLimits: limits)
        for round in 0..<3 {
            for number in 0..<2 {
                let made = try await subscribe(
                    world, Self.compared(10 * round + number), by: world.device, key: "\(number)")
                #expect(made.status == 201)
            }
            #expect(try await subscribe(world, Self.compared(63), by: world.device).code == "trigger_forbidden")
            // The same condition under another key uses nothing.
            #expect(try await subscribe(world, Self.compared(10 * round), by: world.device, key: "same").status == 201)
            let removed = try await world.routes.request(.delete, "/v1/device/subscriptions", key: world.device)
            #expect(removed.json?["removed"] == .integer(3))
        }
    }

    @Test(arguments: [
        ("unguarded", "name.contains('%')"), ("guarded", "price > 7.0 && name.contains('%')"),
        ("bytes", "name == '%%%%%%%%%%'"),
    ])
    func `each limit of an item has its quotas`(limit: String, pattern: String) async throws {
        var limits = ItemEngine.Limits()
        limits.unguardedPerItem = limit == "bytes" ? 1000 : 100
        // 10 characters of two digits each.
        limits.constantBytesPerItem = limit == "bytes" ? 2000 : 100_000
        let world = try await SubscriptionWorld(itemLimits: limits)
        let other = try await world.routes.device().credential
        func trigger(_ number: Int) -> String { pattern.replacing("%", with: "\(number + 10)") }
        for (place, device) in [world.device, other].enumerated() {
            for number in 0..<5 {
                #expect(try await subscribe(world, trigger(10 * place + number), by: device).status == 201)
            }
            let refused = try await subscribe(world, trigger(10 * place + 5), by: device)
            #expect(refused.code == "trigger_forbidden" && refused["detail"].contains("5 %"), "\(refused["detail"])")
        }
        // A condition that both have counts for neither.
        #expect(try await subscribe(world, trigger(0), by: other).status == 201)
        #expect(try await subscribe(world, trigger(5), by: world.device).status == 201)
        #expect(try await subscribe(world, trigger(6), by: world.device).code == "trigger_forbidden")
    }
}
