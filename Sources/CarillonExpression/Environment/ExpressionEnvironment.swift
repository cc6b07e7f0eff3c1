/// The names, types and functions that a condition can use, and the limits of conditions.
public struct ExpressionEnvironment: Sendable {
    /// A name that conditions can use. It can contain dots.
    public struct Variable: Sendable, Hashable {
        public var name: String
        public var type: ExpressionType
        /// The largest size of a text, a list or a map in this variable, as `size()` counts it. It is used for the estimate
        /// of a condition's cost.
        public var maximumSize: Int?
        /// The largest length of a text in bytes of UTF-8. If set, it replaces ``maximumSize``.
        public var maximumBytes: Int?

        public init(_ name: String, _ type: ExpressionType, maximumSize: Int? = nil, maximumBytes: Int? = nil) {
            self.name = name
            self.type = type
            self.maximumSize = maximumSize
            self.maximumBytes = maximumBytes
        }
    }

    /// One reference to all properties, because a program and its shape are copied often.
    private final class Storage: Sendable {
        let variables: [Variable]
        let container: String
        let extensions: Set<ExpressionExtension>
        let limits: ExpressionLimits
        let usesSets: Bool
        let zoneOffset: @Sendable (String, ExpressionTimestamp) -> Int?
        let slots: [String: Int]
        /// The number of parts of the longest declared name of a variable or a type.
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

    /// The declared variables. Their order is the order of the slots in ``ExpressionBindings``.
    public var variables: [Variable] { storage.variables }
    /// The namespace in which names are searched for first, such as `acme.orders`; empty for none.
    public var container: String { storage.container }
    public var extensions: Set<ExpressionExtension> { storage.extensions }
    public var limits: ExpressionLimits { storage.limits }
    /// Whether comparisons of one variable with constants by `==` and `in` use one set. A set costs one unit, one for each 16
    /// constants, and one for each 16 elements of a list. The constants of a set belong to the shape of a condition, so with
    /// sets only equal conditions share a shape. Bindings must have the declared types.
    public var usesSets: Bool { storage.usesSets }
    /// Returns the seconds east of UTC in a zone of the tz database at an instant; nil for an unknown zone. It is not called
    /// for `UTC` and for offsets such as `-03:30`.
    public var zoneOffset: @Sendable (String, ExpressionTimestamp) -> Int? { storage.zoneOffset }

    var slots: [String: Int] { storage.slots }

    /// Makes an environment. If a name is declared several times, the first declaration is used.
    public init(
        _ variables: [Variable] = [], container: String = "", extensions: Set<ExpressionExtension> = [],
        limits: ExpressionLimits = .init(), usesSets: Bool = false,
        zoneOffset: @escaping @Sendable (String, ExpressionTimestamp) -> Int? = { _, _ in nil }
    ) {
        storage = Storage(variables, container, extensions, limits, usesSets, zoneOffset)
    }
}

/// Functions beyond the standard ones. Each is enabled by its name.
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

/// The meaning of a name, or of the beginning of a dotted name.
enum Meaning {
    case variable(slot: Int)
    case type(ExpressionType)
}

extension ExpressionEnvironment {
    /// Returns a name with the namespaces that can precede it, from the innermost ("Name Resolution" in the language's
    /// definition).
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

    /// Returns the longest prefix of a dotted name that is declared or is a type, and its number of parts.
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
    /// Returns the parts of a node such as `a.b.c`; nil for other nodes.
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
