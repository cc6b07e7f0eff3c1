import CarillonBasics
import CarillonExpression
import CarillonWire
import TestSupport
import Testing

@testable import CarillonCore

/// The valid audiences, and the devices that an index finds for them.
struct AudienceTests {
    private let language = AudienceLanguage { _, _ in nil }
    private let rules: ParameterRules

    init() throws {
        let types = ["region": "string", "level": "int", "tags": "strings"].sorted { $0.key < $1.key }
        rules = try ParameterRules(
            .object([
                .init(
                    name: "parameters", value: .object(types.map { .init(name: $0.key, value: .string($0.value)) }))
            ]))
    }

    private func audience(_ source: String) throws -> Audience { try Audience(source, over: rules, in: language) }

    private func facts(
        _ number: UInt64, user: String? = nil, tags: [String] = [], region: String = "x"
    ) throws -> DeviceFacts {
        let values = try ParameterValues(
            .object([
                .init(name: "region", value: .string(region)), .init(name: "tags", value: .array(tags.map { .string($0) })),
            ]), by: rules)
        return language.facts(
            values, device: DeviceID(Bytes16(high: 2, low: number)), user: try user.map { try #require(UserID($0)) },
            app: try #require(AppID("com.example.app")), by: rules)
    }

    private func names(_ count: Int) -> String { (0..<count).map { "'u\($0)'" }.joined(separator: ",") }

    @Test(arguments: [
        "user in [\((0..<22).map { "'name\($0)@example.com'" }.joined(separator: ", "))]",
        "region in [\((0..<15).map { "'region-\($0)'" }.joined(separator: ", "))]",
        (0..<10).map { "'tag\($0)' in tags" }.joined(separator: " || "),
    ])
    func `lists of a few constants are accepted, and an index finds their devices`(source: String) throws {
        #expect(try audience(source).lookup != nil)
    }

    @Test func `an audience has up to 5,000 constants`() throws {
        let audience = try audience("user in [\(names(5000))]")
        #expect(try audience.holds(for: facts(1, user: "u4999")))
        #expect(try !audience.holds(for: facts(1, user: "u5000")))
        #expect(try audience.verdict(for: facts(1, user: "u4999")) == true)
        #expect(try audience.verdict(for: facts(1, user: "u5000")) == false)
        #expect(try audience.verdict(for: facts(1)) == nil, "there is no user")
        let refusal = #expect(throws: ExpressionRefusal.self) { try self.audience("user in [\(names(5001))]") }
        #expect(refusal?.problems.map(\.code) == [.size])
    }

    @Test func `an audience has up to 48 KiB`() throws {
        func source(_ bytes: Int) -> String {
            let rest = "region == ''"
            return "region == '" + String(repeating: "x", count: bytes - rest.utf8.count) + "'"
        }
        _ = try audience(source(49_152))
        #expect(throws: ExpressionRefusal.self) { try audience(source(49_153)) }
    }

    @Test func `a condition that no index serves costs as before`() throws {
        let terms = (0..<200).map { "region.startsWith('a\($0)')" }
        _ = try audience(terms.prefix(100).joined(separator: " || "))
        let refusal = #expect(throws: ExpressionRefusal.self) {
            try audience(Array(repeating: terms, count: 4).joined().joined(separator: " || "))
        }
        #expect(refusal?.problems.map(\.code) == [.cost])
    }

    private func candidates(_ audiences: [String], for facts: DeviceFacts) throws -> [Int64] {
        var live = LiveUpdates()
        for (number, source) in audiences.enumerated() {
            live.insert(Self.update(Int64(number), source), .some(try audience(source)))
        }
        let found = live.candidates(for: facts, after: UpdateSerial(-1)).map(\.rawValue)
        for number in live.serialsInOrder { live.remove(number) }
        #expect(live.candidates(for: facts, after: UpdateSerial(-1)).isEmpty && live.weight == 0)
        return found
    }

    private static func update(_ serial: Int64, _ audience: String?) -> Update {
        let time = Timestamp(milliseconds: 0)
        return Update(
            serial: UpdateSerial(serial), id: UpdateID(Bytes16(high: 1, low: UInt64(serial))), app: AppSerial(1),
            kind: .definitions, audience: audience, mode: .once, orderKey: nil, supersedes: nil, publishedAt: time,
            expiresAt: time, status: .live, statusAt: time, body: [], content: SharedContentID(1))
    }

    @Test func `an index finds devices by each of their tags, their user and the names on both sides of a condition`() throws
    {
        let audiences = [
            "'a' in tags", "'b' in tags || 'c' in tags", "tags.exists(t, t in ['c', 'd'])", "user == 'anna' && 'a' in tags",
            "user == 'anna' || 'c' in tags", "!('a' in tags)", "level > 3", "'a' in tags && 'a' in tags && region == 'y'",
        ]
        let unindexed: [Int64] = [5, 6]
        let ofTag = try candidates(audiences, for: facts(1, tags: ["a", "x"]))
        #expect(ofTag.contains(0) && !ofTag.contains(1) && !ofTag.contains(2) && !ofTag.contains(4))
        #expect(unindexed.allSatisfy(ofTag.contains))
        let ofOther = try candidates(audiences, for: facts(2, user: "anna", tags: ["c"]))
        #expect(ofOther.contains(1) && ofOther.contains(2) && ofOther.contains(4) && !ofOther.contains(0))
    }

    @Test func `the weight of an update grows with the constants of its audience`() throws {
        func weight(_ source: String) throws -> Int {
            var live = LiveUpdates()
            live.insert(Self.update(1, source), .some(try audience(source)))
            return live.weight
        }
        let text = "region == '" + String(repeating: "x", count: 40_000) + "'"
        #expect(try weight(text) < 3 * 40_000)
        #expect(try weight("user in [\(names(5000))]") > 5000 * 350)
    }

    /// Texts, with names that a device has and others, and constants of the kinds that parameters have.
    private struct Generator {
        var random: SeededRandom

        mutating func one(of texts: [String]) -> String { texts.randomElement(using: &random) ?? "true" }

        mutating func term() -> String {
            let text = one(of: ["'a'", "'b'", "'c'", "'x'"])
            let number = one(of: ["1", "2", "2.5", "3"])
            let names =
                "["
                + (0..<Int.random(in: 0...4, using: &random)).map { _ in one(of: ["'a'", "'b'", "'x'"]) }
                .joined(separator: ", ") + "]"
            return one(of: [
                "region == \(text)", "region != \(text)", "user == \(text)", "user in \(names)", "\(text) in tags",
                "tags.exists(t, t in \(names))", "level == \(number)", "level != \(number)", "level in [\(number), 1]",
                "level > 1", "region.startsWith(\(text))", "size(tags) > 1",
            ])
        }

        mutating func condition(_ depth: Int) -> String {
            guard depth > 0, Int.random(in: 0..<4, using: &random) > 0 else { return term() }
            let parts = (0..<Int.random(in: 2...3, using: &random)).map { _ in condition(depth - 1) }
            let joined = "(" + parts.joined(separator: one(of: [" && ", " || "])) + ")"
            return Bool.random(using: &random) ? joined : "!" + joined
        }

        mutating func values() -> [JSONValue.Member] {
            var members: [JSONValue.Member] = []
            if Bool.random(using: &random) {
                members.append(.init(name: "region", value: .string(one(of: ["a", "b", "x"]))))
            }
            if Bool.random(using: &random) {
                members.append(.init(name: "level", value: .integer(Int.random(in: 0...3, using: &random))))
            }
            if Bool.random(using: &random) {
                let tags = (0..<Int.random(in: 0...3, using: &random)).map { _ in JSONValue.string(one(of: ["a", "b", "y"]))
                }
                members.append(.init(name: "tags", value: .array(tags)))
            }
            return members
        }
    }

    @Test func `an index finds each device of a random audience, and sets answer what comparisons answer`() throws {
        var generator = Generator(random: .forTest())
        let plain = language.environment(over: rules)
        let environment = ExpressionEnvironment(
            plain.variables, extensions: plain.extensions, limits: plain.limits, usesSets: false)
        let app = try #require(AppID("com.example.app"))
        var (belonging, missing) = (0, 0)
        var turns = ScenarioTurns(600)
        while turns.next(unless: belonging > 100 && missing > 100) {
            let source = generator.condition(3)
            guard let audience = try? audience(source) else { continue }
            let program = try ExpressionProgram(source, in: environment)
            var live = LiveUpdates()
            live.insert(Self.update(1, source), .some(audience))
            for device in 0..<10 as Range<UInt64> {
                let values = try ParameterValues(.object(generator.values()), by: rules)
                let user = Bool.random(using: &generator.random) ? UserID(generator.one(of: ["a", "b", "y"])) : nil
                let facts = language.facts(
                    values, device: DeviceID(Bytes16(high: 2, low: device)), user: user, app: app, by: rules)
                let verdict = audience.verdict(for: facts)
                #expect(verdict == program.verdict(facts.bindings), "\(source) \(values)")
                if verdict == true {
                    belonging += 1
                    #expect(live.candidates(for: facts, after: UpdateSerial(0)) == [UpdateSerial(1)], "\(source) \(values)")
                } else {
                    missing += 1
                }
            }
        }
        #expect(belonging > 100 && missing > 100)
    }
}
