/// The facts of a store that can be read through its contract, each with a name.
struct WorkloadFacts {
    private(set) var all: [String: String] = [:]

    mutating func note<Value>(_ name: String, _ value: Value) { all[name] = Self.text(of: value) }

    /// Describes a value in one line without the numbers that a store gives to its rows: they depend on the order in which tracks commit.
    static func text<Value>(of value: Value) -> String {
        let parts = String(describing: value).split(separator: ":", omittingEmptySubsequences: false)
        var text = String(parts[0])
        for (before, part) in zip(parts, parts.dropFirst()) {
            let isSerial = before.hasSuffix("rawValue") || before.hasSuffix("serial")
            text += ":"
            text += isSerial ? part.drop(while: { $0 == " " || $0 == "-" || $0.isNumber }) : part
        }
        return String(text.map { $0.isNewline ? " " : $0 })
    }
}
