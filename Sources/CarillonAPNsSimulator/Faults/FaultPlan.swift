/// The active fault rules, with the number of times that each has happened.
///
/// The first rule applies that matches the request, has not reached its number of times, and is selected at random. The
/// random value is a function of the seed, the rule's position, the connection and the stream, and of nothing that depends on
/// timing.
struct FaultPlan: Sendable {
    private struct Entry: Sendable {
        var rule: FaultRule
        var matched = 0
        var happened = 0
    }

    var seed: UInt64
    private var entries: [Entry] = []

    init(seed: UInt64) { self.seed = seed }

    var rules: [FaultRule] {
        get { entries.map(\.rule) }
        set { entries = newValue.map { Entry(rule: $0) } }
    }

    /// How often each rule has happened, in the order of the rules.
    var counts: [Int] { entries.map(\.happened) }
    var isEmpty: Bool { entries.isEmpty }

    mutating func append(_ rule: FaultRule) { entries.append(Entry(rule: rule)) }

    /// Returns the rule that applies to a new request; nil if no rule applies.
    mutating func rule(path: String, connection: Int, stream: UInt32) -> FaultRule? {
        for index in entries.indices {
            let rule = entries[index].rule
            if let suffix = rule.pathSuffix, !path.hasSuffix(suffix) { continue }
            if let only = rule.connection, only != connection { continue }
            entries[index].matched += 1
            guard entries[index].matched > rule.skip else { continue }
            if let times = rule.times, entries[index].happened >= times { continue }
            guard rule.rate >= 1 || chance(index, connection, stream) < rule.rate else { continue }
            entries[index].happened += 1
            return rule
        }
        return nil
    }

    private func chance(_ index: Int, _ connection: Int, _ stream: UInt32) -> Double {
        var value = IdentifierSource.mixed(seed &+ UInt64(index + 1) &* 0x9E37_79B9_7F4A_7C15)
        value = IdentifierSource.mixed(value ^ UInt64(connection) << 32 ^ UInt64(stream))
        return Double(value >> 11) / Double(1 << 53)
    }
}
