import CarillonBasics
import CarillonCore
import CarillonExpression
import CarillonWire
import Testing

/// What an audience may say, and which devices an index finds for it.
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

    @Test func `what no index answers costs as before`() throws {
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
        #expect(live.candidates(for: facts, after: UpdateSerial(-1)).isEmpty && live.audienceBytes == 0)
        return found
    }

    private static func update(_ serial: Int64, _ audience: String?) -> Update {
        let time = Timestamp(milliseconds: 0)
        return Update(
            serial: UpdateSerial(serial), id: UpdateID(Bytes16(high: 1, low: UInt64(serial))), app: AppSerial(1),
            kind: .definitions, audience: audience, mode: .once, orderKey: nil, supersedes: nil, publishedAt: time,
            expiresAt: time, status: .live, statusAt: time, body: [], content: SharedContentID(1))
    }

    @Test func `an index finds devices by each of their tags, their user and what both sides of a condition name`() throws {
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

    @Test func `the audiences of live updates have room together, without that which is superseded`() throws {
        var live = LiveUpdates()
        live.insert(Self.update(1, String(repeating: "x", count: 40)), .unreadable)
        live.insert(Self.update(2, nil), .everyone)
        func hasRoom(_ bytes: Int?, superseding serial: UInt64? = nil) -> Bool {
            live.hasRoom(
                for: Update.Definition(
                    kind: .definitions, payload: [], audience: bytes.map { String(repeating: "y", count: $0) }, mode: .once,
                    ttlSeconds: 60, orderKey: nil, supersedes: serial.map { UpdateID(Bytes16(high: 1, low: $0)) }), 100)
        }
        #expect(hasRoom(60) && !hasRoom(61) && hasRoom(nil))
        #expect(hasRoom(100, superseding: 1) && !hasRoom(101, superseding: 1) && !hasRoom(61, superseding: 2))
    }
}
