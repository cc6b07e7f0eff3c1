import CarillonExpression
import TestSupport
import Testing

@testable import CarillonCore

/// The index against evaluating everything.
struct ItemIndexTests {
    static let environment = ExpressionEnvironment([
        .init("fields", .map(key: .string, value: .dynamic)), .init("previous", .map(key: .string, value: .dynamic)),
    ])

    static func program(_ source: String) throws -> ExpressionProgram {
        try ExpressionProgram.unchecked(source, in: environment)
    }

    /// The current and the previous values of an item.
    static func bindings(_ fields: [String: ExpressionValue], previous: [String: ExpressionValue]? = nil)
        -> ExpressionBindings
    {
        func map(_ fields: [String: ExpressionValue]) -> ExpressionValue {
            var map = ExpressionMap()
            for (name, value) in fields.sorted(by: { $0.key < $1.key }) { _ = map.insert(value, for: .string(name)) }
            return .map(map)
        }
        var bindings = ExpressionBindings(environment)
        bindings["fields"] = map(fields)
        bindings["previous"] = previous.map(map)
        for (name, value) in fields { bindings[name] = value }
        return bindings
    }

    private struct World {
        let shapes = ConditionShapes(ItemIndexTests.environment)
        var index: ItemIndex
        var atOnce = Int.max

        init(at bindings: ExpressionBindings? = nil) { index = ItemIndex(shapes, at: bindings) }

        mutating func add(
            _ subscription: Int64, _ source: String?, _ policy: ItemIndex.Policy = .once
        ) throws -> ItemIndex.Handle {
            guard let source else { return index.add(subscription, policy, shape: nil) }
            let program = try ItemIndexTests.program(source)
            return index.add(subscription, policy, shape: try shapes.number(of: program), constants: program.constants)
        }

        mutating func update(_ price: ExpressionValue) -> [Int64] {
            let bindings = ItemIndexTests.bindings(["price": price])
            // At once, or as the engine does it.
            guard atOnce < .max else { return index.update(bindings).fired.map(\.subscription).sorted() }
            var pass = index.begin(bindings)
            while !index.advance(&pass, by: atOnce) {}
            return pass.outcome.fired.map(\.subscription).sorted()
        }
    }

    // MARK: By hand

    @Test(arguments: [1, 2, 3, 7, .max]) func `an update in slices is the same as one at once`(atOnce: Int) throws {
        var world = World()
        world.atOnce = atOnce
        for number in 0..<7 { _ = try world.add(Int64(number), "price + \(number).0 > 10.0", .everyCrossing) }
        #expect(world.update(.double(3)).isEmpty)
        #expect(world.update(.double(6)) == [5, 6])
        #expect(world.update(.double(9.5)) == [1, 2, 3, 4])
        #expect(world.update(.double(1)).isEmpty)
        #expect(world.update(.double(11)) == [0, 1, 2, 3, 4, 5, 6])
    }

    @Test func `a check evaluates the named subscriptions that were not evaluated before`() throws {
        var world = World()
        let one = try world.add(1, "price > 100.0", .everyCrossing)
        #expect(world.index.look(at: [one]).fired.isEmpty, "there was no update")
        #expect(world.update(.double(101)) == [1])
        #expect(world.index.look(at: [one]).fired.isEmpty)
        let others = [
            try world.add(2, "price > 100.0"), try world.add(3, "price > 100.0", .every), try world.add(4, "price > 101.0"),
            try world.add(5, nil, .every),
        ]
        let later = try world.add(6, "price > 100.0", .every)
        #expect(world.index.look(at: [one] + others).fired.map(\.subscription).sorted() == [2, 3])
        #expect(world.index.look(at: others).fired.isEmpty)
        #expect(world.index.handles(of: world.index.unseen) == [later], "it was not named")
        #expect(world.update(.double(102)) == [3, 4, 5, 6])
    }

    @Test func `a subscription that fires with each update is not evaluated again when it is loaded`() throws {
        var world = World(at: Self.bindings(["price": .double(150)]))
        let program = try Self.program("price > 100.0")
        let shape = try world.shapes.number(of: program)
        for (number, policy) in [ItemIndex.Policy.once, .everyCrossing, .every].enumerated() {
            let handle = world.index.add(
                Int64(number), policy, shape: shape, constants: program.constants, wasWatched: true)
            #expect(world.index.look(at: [handle]).fired.map(\.subscription) == (policy == .once ? [0] : []))
        }
        #expect(world.update(.double(151)) == [2])
    }

    @Test func `without a condition each update fires, and a single firing fires once until it is withdrawn`() throws {
        var world = World()
        let once = try world.add(1, nil, .once)
        _ = try world.add(2, nil, .every)
        #expect(world.update(.double(1)) == [1, 2])
        #expect(world.update(.double(2)) == [2])
        world.index.takeBack(once)
        #expect(world.update(.double(3)) == [1, 2])
    }

    @Test func `expressions are counted once, and go with their last condition`() throws {
        var world = World()
        func new(_ source: String) throws -> Int {
            let program = try Self.program(source)
            let shape = try world.shapes.number(of: program)
            defer { world.shapes.forget(shape) }
            return world.index.usage(adding: shape, program.constants, in: world.shapes).compared
        }
        #expect(try new("price > 1.0 && volume > 2") == 2)
        let one = try world.add(1, "price > 100.0")
        #expect(try new("price > 1.0 && volume > 2 && price < 7.0") == 1)
        _ = try world.add(2, "price > 200.0 && volume > 1")
        #expect(world.index.comparedCount == 2)
        world.index.remove(one)
        #expect(world.index.comparedCount == 2)
    }

    @Test func `each policy fires when it should`() throws {
        var world = World()
        let once = try world.add(1, "price > 100.0")
        _ = try world.add(2, "price > 100.0", .everyCrossing)
        _ = try world.add(3, "price > 100.0", .every)
        let always = try world.add(4, nil, .every)
        #expect(world.update(.double(99)) == [4])
        #expect(world.update(.double(101)) == [1, 2, 3, 4])
        world.index.remove(once)
        #expect(world.update(.double(102)) == [3, 4])
        #expect(world.update(.double(100)) == [4])
        #expect(world.update(.int(101)) == [2, 3, 4])
        world.index.remove(always)
        _ = try world.add(5, "price > 100.0")
        #expect(world.update(.int(101)) == [3, 5], "a condition that is true when it is armed fires with the next update")
    }

    @Test func `a firing that was not stored occurs again, and no other does`() throws {
        var world = World()
        let one = try world.add(1, "price > 100.0")
        _ = try world.add(2, "price > 100.0")
        #expect(world.update(.double(101)) == [1, 2])
        world.index.takeBack(one)
        world.index.takeBack(one)
        #expect(world.update(.double(101)) == [1])
        world.index.takeBack(one)
        #expect(world.update(.double(99)).isEmpty)
        #expect(world.update(.double(101)) == [1, 2], "both stay armed until they are removed")
    }

    @Test func `a restart knows the conditions that were true before it`() throws {
        var world = World(at: Self.bindings(["price": .double(150)]))
        _ = try world.add(1, "price > 100.0")
        _ = try world.add(2, "price > 200.0")
        #expect(world.update(.double(150)) == [1])
        #expect(world.update(.double(250)) == [2])
    }

    @Test func `an item that was true before a restart and is true afterwards has not crossed since`() throws {
        for source in ["price > 100.0", "price > 100.0 && price * 2.0 > 200.0"] {
            let shapes = ConditionShapes(Self.environment)
            var index = ItemIndex(shapes, at: Self.bindings(["price": .double(150)]))
            let program = try Self.program(source)
            let shape = try shapes.number(of: program)
            for (number, policy) in [ItemIndex.Policy.once, .everyCrossing, .every].enumerated() {
                for wasWatched in [true, false] {
                    _ = index.add(
                        Int64(10 * number + (wasWatched ? 1 : 0)), policy, shape: shape, constants: program.constants,
                        wasWatched: wasWatched)
                }
            }
            func update(_ price: Double) -> [Int64] {
                index.update(Self.bindings(["price": .double(price)])).fired.map(\.subscription).sorted()
            }
            #expect(update(160) == [0, 1, 10, 20, 21], "\(source)")
            #expect(update(50).isEmpty)
            #expect(update(160) == [0, 1, 10, 11, 20, 21])
        }
    }

    @Test func `constants that are equal and not the same are two`() throws {
        var world = World()
        _ = try world.add(1, "price / 0.0 > 5.0")
        _ = try world.add(2, "price / -0.0 > 5.0")
        #expect(world.update(.double(1)) == [1])
        #expect(world.update(.double(-1)) == [2])
    }

    @Test func `equal conditions are one, and shapes go with their last condition`() throws {
        var world = World()
        var handles: [ItemIndex.Handle] = []
        for number in Int64(0)..<100 {
            handles.append(try world.add(number, "price > \(number / 10).5 && !name.startsWith('a')"))
        }
        #expect(world.shapes.count == 1 && world.index.count == 100)
        _ = world.update(.double(99))
        #expect(world.index.evaluatedCount == 10)
        for handle in handles { world.index.remove(handle) }
        #expect(world.shapes.count == 0 && world.index.count == 0 && world.index.evaluatedCount == 0)
        let unused = try world.shapes.number(of: Self.program("price < 1.0"))
        world.shapes.forget(unused)
        #expect(world.shapes.count == 0)
        #expect(world.update(.double(1)).isEmpty)
    }

    @Test func `only conditions without a guarding comparison are evaluated with each update`() throws {
        let shapes = ConditionShapes(Self.environment)
        for (source, isUnguarded) in [
            ("price > 1", false), ("size(name) > 3", false), ("price > 1 && name.startsWith('a')", false),
            ("name.startsWith('a')", true), ("price > 1 || name.startsWith('a')", true), ("price * 2 > 3", true),
            ("!(price in [1, 2])", true), ("name in ['a', 'b']", false),
        ] {
            #expect(
                ItemIndex.isUnguarded(try shapes.number(of: Self.program(source)), in: shapes) == isUnguarded, "\(source)")
        }
    }

    @Test func `no value is before null, and a number is in a list once, for all number types`() throws {
        var world = World()
        for (number, source) in [
            "price <= null", "!(price > null)", "price == null", "price in [1, 1u, 1.0, 2]",
            "price in [1, 1u, 1.0] && price > 0",
        ].enumerated() {
            _ = try world.add(Int64(number), source, .every)
        }
        #expect(world.update(.null) == [2])
        #expect(world.update(.int(1)) == [3, 4])
        #expect(world.update(.double(2)) == [3])
        #expect(world.update(.uint(1)) == [3, 4])
        #expect(world.update(.double(3)).isEmpty)
    }

    @Test func `a condition without a value is counted, and is not true`() throws {
        var world = World()
        _ = try world.add(1, "price > 0 && name.startsWith('a')", .every)
        #expect(world.index.update(Self.bindings(["price": .int(1)])).errors == 1)
        #expect(world.index.update(Self.bindings(["price": .int(1), "name": .string("ab")])).fired.count == 1)
        #expect(world.index.update(Self.bindings(["price": .int(1), "name": .int(1)])).errors == 1)
        #expect(world.index.update(Self.bindings(["price": .int(-1)])).errors == 0, "its comparison is false")
    }

    @Test func `many that come and go between updates leave nothing behind`() throws {
        var world = World()
        let kept = try world.add(-1, "price > 0.0")
        var last = try world.add(0, "price > 0.0")
        for number in Int64(0)..<20_000 {
            world.index.remove(last)
            last = try world.add(0, "price > \(number % 5).0")
        }
        #expect(world.index.count == 2 && world.index.freshCount < 1010)
        #expect(world.update(.double(9)) == [-1, 0])
        for _ in 0..<3 { world.index.takeBack(kept) }
        #expect(world.index.freshCount == 1)
    }

    @Test func `an update at which nothing fires costs no more among many than among few`() throws {
        func world(of count: Int) throws -> World {
            var world = World()
            let program = try Self.program("price > 1.5")
            let shape = try world.shapes.number(of: program)
            for number in 0..<count {
                _ = world.index.add(Int64(number), .once, shape: shape, constants: [.double(1000 + Double(number))])
            }
            _ = world.update(.double(1))
            return world
        }
        var worlds = [try world(of: 1000), try world(of: 50_000)]
        // An interruption makes either slower, but not each time.
        var fastest = [Duration.seconds(3600), .seconds(3600)]
        for number in 0..<1001 {
            let bindings = Self.bindings(["price": .double(Double(number % 900))])
            for place in worlds.indices {
                let time = ThreadTime.measure {
                    #expect(worlds[place].index.update(bindings).fired.isEmpty)
                }
                fastest[place] = min(fastest[place], time)
            }
        }
        #expect(fastest[1] < fastest[0] * 4, "\(fastest)")
    }

    // MARK: By chance

    private static let values: [ExpressionValue?] = [
        nil, .null, .bool(true), .bool(false), .int(0), .int(1), .int(2), .int(3), .int(9_007_199_254_740_993), .uint(1),
        .uint(.max), .double(0.5), .double(1), .double(2), .double(.nan), .double(.infinity), .double(-0.0),
        .double(9_007_199_254_740_992), .string(""), .string("a"), .string("b"), .string("é"), .bytes([1]), .list([]),
        .list([.int(1)]), ExpressionTimestamp("2026-01-01T00:00:00Z").map(ExpressionValue.timestamp),
    ]

    private struct Model {
        var program: ExpressionProgram?
        var policy: ItemIndex.Policy
        var handle: ItemIndex.Handle
        var isFresh = true
        var held = false
        var isQuiet = false
    }

    @Test(arguments: RandomSeed.some(12))
    func `the index fires exactly the subscriptions that a full evaluation fires`(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        func pick<Element>(_ elements: [Element]) -> Element { elements[Int.random(in: elements.indices, using: &random)] }
        let constants = [
            "0", "1", "2", "1u", "0.5", "1.0", "9007199254740993", "9007199254740992.0", "'a'", "'b'", "'é'", "true", "null",
            "[1]", "-1", "b'\\x01'", "18446744073709551615u",
        ]
        func condition(_ depth: Int) -> String {
            let name = pick(["x", "y", "fields.z", "previous.x", "size(y)"])
            switch Int.random(in: 0..<(depth > 2 ? 6 : 10), using: &random) {
            case 0: return "\(name)"
            case 1: return "\(name) in [\(pick(constants)), \(pick(constants))]"
            case 2: return "\(name) in ['a', 'b', 'a']"
            case 3: return "\(pick(constants)) \(pick(["<", "<=", ">", ">=", "==", "!="])) \(name)"
            case 4: return pick(["x > y", "has(fields.z)", "x + 1 > 1", "x != previous.x", "y.startsWith('a')"])
            case 5: return "\(name) \(pick(["<", "<=", ">", ">=", "==", "!="])) \(pick(constants))"
            case 6: return "!(\(condition(depth + 1)))"
            case 7: return "(\(condition(depth + 1)) || \(condition(depth + 1)))"
            default: return "(\(condition(depth + 1)) && \(condition(depth + 1)))"
            }
        }
        var sources: [String] = []
        for _ in 0..<30 { sources.append(condition(0)) }
        var fields: [String: ExpressionValue] = [:]
        var before: [String: ExpressionValue]?
        var world = World()
        var models: [Int64: Model] = [:]
        var next = Int64(0)
        for step in 0..<250 {
            for _ in 0..<Int.random(in: 0..<4, using: &random) {
                let source = Int.random(in: 0..<20, using: &random) == 0 ? nil : pick(sources)
                let policy = source == nil ? .every : pick([ItemIndex.Policy.once, .everyCrossing, .every])
                models[next] = Model(
                    program: try source.map(Self.program), policy: policy, handle: try world.add(next, source, policy))
                next += 1
            }
            if !models.isEmpty, Int.random(in: 0..<3, using: &random) == 0,
                let gone = models.keys.sorted().randomElement(using: &random)
            {
                let model = models.removeValue(forKey: gone)
                world.index.remove(try #require(model).handle)
            }
            if Int.random(in: 0..<3, using: &random) > 0 {
                before = fields
                let name = pick(["x", "y", "z"])
                fields[name] = pick(Self.values)
            }
            let bindings = Self.bindings(fields, previous: before)
            let fired = world.index.update(bindings).fired.map(\.subscription).sorted()
            var expected: [Int64] = []
            for (number, model) in models {
                let holds = model.program.map { (try? $0.holds(bindings)) ?? false } ?? true
                var model = model
                if !holds { model.isQuiet = false }
                switch model.policy {
                case .every: if holds { expected.append(number) }
                case .once, .everyCrossing:
                    if holds, !model.isQuiet, model.isFresh || !model.held {
                        expected.append(number)
                        model.isQuiet = true
                    }
                }
                model.isFresh = false
                model.held = holds
                models[number] = model
            }
            #expect(fired == expected.sorted(), "step \(step), \(sources)")
            if fired != expected.sorted() { return }
            // Subscriptions that fire once are removed, or are not stored.
            for number in fired {
                guard var model = models[number], model.policy == .once else { continue }
                if Int.random(in: 0..<4, using: &random) == 0 {
                    world.index.takeBack(model.handle)
                    model.isQuiet = false
                    model.isFresh = true
                    models[number] = model
                } else {
                    world.index.remove(model.handle)
                    models[number] = nil
                }
            }
        }
        for model in models.values { world.index.remove(model.handle) }
        #expect(world.index.count == 0 && world.shapes.count == 0 && world.index.evaluatedCount == 0)
    }
}
