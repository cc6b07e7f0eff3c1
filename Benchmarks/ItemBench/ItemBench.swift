import CarillonBasics
import CarillonCore
import CarillonExpression
import CarillonWire
import Foundation

/// What an update costs in the engine's index, without a store: prints a figure a line, its name, a tab and its number. `carillon-bench`
/// runs it for the row `items`.
@main
struct ItemBench {
    /// How many conditions, items, subscriptions and updates.
    var thresholds = 1_000_000
    var items = 10_000
    var subscriptionsEach = 100
    var updates = 20_000
    /// Of one app, and the names in one audience.
    var devices = 1_000_000
    var names = 5000

    static func main() throws {
        var bench = ItemBench()
        if CommandLine.arguments.contains("--quick") {
            (bench.thresholds, bench.items, bench.updates, bench.devices) = (20_000, 200, 2000, 20_000)
        }
        try bench.measureThresholds()
        try bench.measureItems()
        try bench.measureAudiences()
    }

    private func measureThresholds() throws {
        let few = try Thresholds(1000)
        let spentFew = few.pass(updates)
        let before = residentBytes()
        let many = try Thresholds(thresholds)
        let bytes = residentBytes() - before
        let spentMany = many.pass(updates)
        say("an update that fires nothing, 1,000 thresholds: 50th percentile, µs", spentFew.percentile(0.5) / 1000)
        say("the same, 99th percentile, µs", spentFew.percentile(0.99) / 1000)
        say(
            "an update that fires nothing, \(thresholds.grouped) thresholds: 50th percentile, µs",
            spentMany.percentile(0.5) / 1000)
        say("the same, 99th percentile, µs", spentMany.percentile(0.99) / 1000)
        say("memory for each of \(thresholds.grouped) thresholds, bytes", Double(bytes) / Double(thresholds))
        say("to arm and disarm one among \(thresholds.grouped), µs", try many.arming(updates) / 1000)
        let start = nanoseconds()
        let fired = many.cross()
        guard fired == thresholds else { throw Failure("\(fired) of \(thresholds) fired") }
        say("all \(thresholds.grouped) crossed by one update: each, ns", Double(nanoseconds() - start) / Double(fired))
    }

    private func measureItems() throws {
        let conditions = ItemConditions { _, _ in 0 }
        let shapes = ConditionShapes(conditions.environment)
        var all: [Item] = []
        var subscription: Int64 = 0
        for item in 0..<items {
            var index = ItemIndex(shapes)
            for number in 0..<subscriptionsEach {
                subscription += 1
                let program = try conditions.condition("price > \(1000 + number).5 && volume > 10", over: Thresholds.fields)
                _ = index.add(
                    subscription, .everyCrossing, shape: try shapes.number(of: program), constants: program.constants)
            }
            var state = ItemState(.merge)
            state.apply(.init(Thresholds.values(Double(item % 900)), at: .init(milliseconds: 0)))
            all.append(Item(state, index))
        }
        var fired = 0
        let count = updates * 100
        let start = nanoseconds()
        for number in 0..<count {
            let item = all[number % items]
            item.state.apply(.init(Thresholds.values(Double(number % 1000)), at: .init(milliseconds: Int64(number))))
            guard let bindings = conditions.bindings("ACME", item.state) else { continue }
            fired += item.index.update(bindings).fired.count
        }
        let spent = Double(nanoseconds() - start)
        guard fired == 0 else { throw Failure("\(fired) fired that should not") }
        say(
            "updates evaluated per second on one core, \(items.grouped) items with \(subscriptionsEach) subscriptions each",
            Double(count) / (spent / 1e9))
    }

    /// Audiences with many constants, each evaluated for every device, and looked up by an index as a device that polls does it.
    private func measureAudiences() throws {
        let crowd = try Crowd(devices: devices)
        let users = (0..<names).map { "'u\($0)'" }
        let tags = (0..<min(names, 2000)).map { "'t\($0)' in tags" }
        let byUser = try crowd.audience("user in [\(users.joined(separator: ","))]")
        let byTag = try crowd.audience(tags.joined(separator: "||"))
        let audiences = [
            ("user in \(names.grouped) names", byUser), ("\(tags.count.grouped) of 't' in tags, 2 % with 100 tags", byTag),
        ]
        for (name, audience) in audiences {
            let spent = try crowd.evaluate(audience)
            say("\(name), each of \(devices.grouped) devices: 50th percentile, µs", spent.percentile(0.5) / 1000)
            say("the same, 99th percentile, µs", spent.percentile(0.99) / 1000)
        }
        let start = nanoseconds()
        let found = try crowd.find(byUser)
        guard found == min(names, devices) else { throw Failure("the index found \(found) devices") }
        say(
            "\(names.grouped) names found among \(devices.grouped) devices by the index: each device, µs",
            Double(nanoseconds() - start) / 1000 / Double(devices))
    }

    private func say(_ name: String, _ number: Double) { print("\(name)\t\(number)") }
}

struct Failure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

private final class Item {
    var state: ItemState
    var index: ItemIndex

    init(_ state: ItemState, _ index: ItemIndex) { (self.state, self.index) = (state, index) }
}

/// An item with many conditions that differ in their constants.
private final class Thresholds {
    static let fields: [String: ExpressionType] = ["price": .double, "volume": .int]
    private let conditions = ItemConditions { _, _ in 0 }
    private let shapes: ConditionShapes
    private var index: ItemIndex
    private var state = ItemState(.merge)
    private let count: Int
    /// Above all that ``pass(_:)`` says.
    private let lowest = 1000.0

    static func values(_ price: Double) -> [String: ItemValue] {
        ["price": ItemValue(.double(price)), "volume": ItemValue(.int(5))]
    }

    init(_ count: Int) throws {
        self.count = count
        shapes = ConditionShapes(conditions.environment)
        index = ItemIndex(shapes)
        for number in 0..<count {
            // In no order, as they come.
            let place = (number &* 7_368_787) % count
            try arm(Int64(number), lowest + Double(place) / 16)
        }
        _ = update(0)
    }

    @discardableResult private func arm(_ subscription: Int64, _ threshold: Double) throws -> ItemIndex.Handle {
        let program = try conditions.condition("price > \(threshold)", over: Self.fields)
        return index.add(subscription, .once, shape: try shapes.number(of: program), constants: program.constants)
    }

    private func update(_ price: Double) -> Int {
        state.apply(.init(Self.values(price), at: .init(milliseconds: 0)))
        guard let bindings = conditions.bindings("ACME", state) else { return 0 }
        return index.update(bindings).fired.count
    }

    /// Nanoseconds of each update.
    func pass(_ updates: Int) -> [Double] {
        var generator = SystemRandomNumberGenerator()
        return (0..<updates).map { _ in
            let price = Double.random(in: 0..<lowest, using: &generator)
            let start = nanoseconds()
            guard update(price) == 0 else { return .infinity }
            return Double(nanoseconds() - start)
        }
    }

    /// Nanoseconds of one that is armed and disarmed, its condition read before.
    func arming(_ times: Int) throws -> Double {
        let program = try conditions.condition("price > 1.0", over: Self.fields)
        let shape = try shapes.number(of: program)
        let thresholds = (0..<times).map { _ in lowest + Double.random(in: 0..<Double(count) / 16) }
        let start = nanoseconds()
        for (number, threshold) in thresholds.enumerated() {
            let handle = index.add(Int64(count + number), .once, shape: shape, constants: [.double(threshold)])
            index.remove(handle)
        }
        return Double(nanoseconds() - start) / Double(times)
    }

    func cross() -> Int { update(.greatestFiniteMagnitude) }
}

/// The devices of an app: each has a user of its own, and the last fiftieth have as many tags as a device may.
private struct Crowd {
    private static let tags = (0..<ParameterRules.mostElements).map { "other\($0)" }
    private let rules: ParameterRules
    private let language = AudienceLanguage { _, _ in nil }
    private let app: AppID
    private let devices: Int

    init(devices: Int) throws {
        self.devices = devices
        guard let app = AppID("com.example.app") else { throw Failure("the app has no name") }
        self.app = app
        rules = try ParameterRules(
            .object([.init(name: "parameters", value: .object([.init(name: "tags", value: .string("strings"))]))]))
    }

    func audience(_ source: String) throws -> Audience { try Audience(source, over: rules, in: language) }

    private func facts(_ number: Int) throws -> DeviceFacts {
        let tags = number >= devices - devices / 50 ? Self.tags : ["other"]
        let values = try ParameterValues(
            .object([.init(name: "tags", value: .array(tags.map { .string($0) }))]), by: rules)
        return language.facts(
            values, device: DeviceID(Bytes16(high: 2, low: UInt64(number))), user: UserID("u\(number)"), app: app, by: rules)
    }

    /// Nanoseconds for each device.
    func evaluate(_ audience: Audience) throws -> [Double] {
        try (0..<devices).map { number in
            let facts = try self.facts(number)
            let start = nanoseconds()
            _ = audience.verdict(for: facts)
            return Double(nanoseconds() - start)
        }
    }

    /// For how many devices an index finds an update.
    func find(_ audience: Audience) throws -> Int {
        var live = LiveUpdates()
        let time = Timestamp(milliseconds: 0)
        let update = Update(
            serial: UpdateSerial(1), id: UpdateID(Bytes16(high: 1, low: 1)), app: AppSerial(1), kind: .definitions,
            audience: nil, mode: .once, orderKey: nil, supersedes: nil, publishedAt: time, expiresAt: time, status: .live,
            statusAt: time, body: [], content: SharedContentID(1))
        live.insert(update, .some(audience))
        var found = 0
        for number in 0..<devices {
            found += live.candidates(for: try facts(number), after: UpdateSerial(0)).count
        }
        return found
    }
}

extension [Double] {
    fileprivate func percentile(_ share: Double) -> Double { sorted()[Int(Double(count - 1) * share)] }
}

extension Int {
    fileprivate var grouped: String {
        var (digits, groups) = (String(self), [String]())
        while digits.count > 3 {
            groups.insert(String(digits.suffix(3)), at: 0)
            digits.removeLast(3)
        }
        return ([digits] + groups).joined(separator: ",")
    }
}

private func nanoseconds() -> UInt64 { DispatchTime.now().uptimeNanoseconds }

/// Zero where the system does not say it as Linux does.
private func residentBytes() -> Int {
    guard
        let pages = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8).split(separator: " ").dropFirst().first
    else { return 0 }
    return (Int(pages) ?? 0) * 4096
}
