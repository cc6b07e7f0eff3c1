/// What a condition may speak of: names and their types, functions beyond the standard ones, and limits.
public struct ExpressionEnvironment: Sendable {
    /// A name that conditions may use, which may hold dots.
    public struct Variable: Sendable, Hashable {
        public var name: String
        public var type: ExpressionType
        /// How large a text, a list or a map it holds at most, as `size()` counts; decides what a condition may cost.
        public var maximumSize: Int?
        /// How many bytes a text has at most in UTF-8; counts instead of ``maximumSize``.
        public var maximumBytes: Int?

        public init(_ name: String, _ type: ExpressionType, maximumSize: Int? = nil, maximumBytes: Int? = nil) {
            self.name = name
            self.type = type
            self.maximumSize = maximumSize
            self.maximumBytes = maximumBytes
        }
    }

    /// One reference, as a program and its shape are copied often.
    private final class Storage: Sendable {
        let variables: [Variable]
        let container: String
        let extensions: Set<ExpressionExtension>
        let limits: ExpressionLimits
        let usesSets: Bool
        let zoneOffset: @Sendable (String, ExpressionTimestamp) -> Int?
        let slots: [String: Int]
        /// Of a variable or a type that is declared, counted in parts.
        let longestName: Int

        init(
            _ variables: [Variable], _ container: String, _ extensions: Set<ExpressionExtension>, _ limits: ExpressionLimits,
            _ usesSets: Bool, _ zoneOffset: @escaping @Sendable (String, ExpressionTimestamp) -> Int?
        ) {
            self.variables = variables
            self.container = container
            self.extensions = extensions
            self.limits = limits
            self.usesSets = usesSets
            self.zoneOffset = zoneOffset
            slots = Dictionary(variables.enumerated().map { ($0.element.name, $0.offset) }) { first, _ in first }
            let names = variables.map(\.name) + Array(ExpressionType.named.keys)
            longestName = names.reduce(1) { max($0, 1 + $1.utf8.count { $0 == UInt8(ascii: ".") }) }
        }
    }

    private let storage: Storage

    /// Their order is the order of the slots in ``ExpressionBindings``.
    public var variables: [Variable] { storage.variables }
    /// The namespace in which names are looked for first, such as `acme.orders`; empty for none.
    public var container: String { storage.container }
    public var extensions: Set<ExpressionExtension> { storage.extensions }
    public var limits: ExpressionLimits { storage.limits }
    /// Whether comparisons of one variable with constants by `==` and `in` are answered together by a set, which costs one unit, one for
    /// each 16 constants, and one for each 16 elements of a list. The constants of a set belong to the shape of a condition: with sets, only
    /// equal conditions share a shape. Bindings must have the types that are declared.
    public var usesSets: Bool { storage.usesSets }
    /// Seconds east of UTC in a zone of the tz database at an instant; nil where it does not know the zone. It is not asked for `UTC` and
    /// for offsets such as `-03:30`.
    public var zoneOffset: @Sendable (String, ExpressionTimestamp) -> Int? { storage.zoneOffset }

    var slots: [String: Int] { storage.slots }

    /// The first of several declarations of a name counts.
    public init(
        _ variables: [Variable] = [], container: String = "", extensions: Set<ExpressionExtension> = [],
        limits: ExpressionLimits = .init(), usesSets: Bool = false,
        zoneOffset: @escaping @Sendable (String, ExpressionTimestamp) -> Int? = { _, _ in nil }
    ) {
        storage = Storage(variables, container, extensions, limits, usesSets, zoneOffset)
    }
}

/// What is beyond the standard functions, each switched on by its name.
public enum ExpressionExtension: String, Sendable, Hashable, CaseIterable {
    /// `crosses(previous, now, level)`.
    case crosses
    /// `percentChange(a, b)`.
    case percentChange
    /// `within(location, latitude, longitude, metres)`.
    case within
    /// `version(string)`.
    case version
}

// MARK: Names

/// What a name, or the beginning of a dotted one, stands for.
enum Meaning {
    case variable(slot: Int)
    case type(ExpressionType)
}

extension ExpressionEnvironment {
    /// A name with the namespaces before it, from the innermost ("Name Resolution" in the language's definition).
    func candidates(_ name: String, isRoot: Bool) -> [String] {
        guard !isRoot, !container.isEmpty else { return [name] }
        var parts = container.split(separator: ".")
        var candidates: [String] = []
        while !parts.isEmpty {
            candidates.append(parts.joined(separator: ".") + "." + name)
            parts.removeLast()
        }
        return candidates + [name]
    }

    /// The longest prefix of a dotted name that is declared, or is a type, and how many parts it has.
    func meaning(of parts: [String], isRoot: Bool) -> (meaning: Meaning, count: Int)? {
        for count in stride(from: min(parts.count, storage.longestName), to: 0, by: -1) {
            let name = parts.prefix(count).joined(separator: ".")
            for candidate in candidates(name, isRoot: isRoot) {
                if let slot = slots[candidate] { return (.variable(slot: slot), count) }
                if let type = ExpressionType.named[candidate] { return (.type(type), count) }
            }
        }
        return nil
    }
}

extension SyntaxTree {
    /// The parts of `a.b.c`, if that is what the node is.
    func dottedName(_ id: ID) -> (parts: [String], isRoot: Bool)? {
        var fields: [String] = []
        var id = id
        while case .select(let operand, let field) = self[id].form {
            fields.append(field)
            id = operand
        }
        guard case .name(let name, let isRoot) = self[id].form else { return nil }
        return ([name] + fields.reversed(), isRoot)
    }
}
