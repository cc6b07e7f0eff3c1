/// A map of the language. Keys are Booleans, integers and strings, in the order of insertion. A number finds its entry by its
/// value, in any number type.
public struct ExpressionMap: Sendable {
    public struct Entry: Sendable {
        public let key: ExpressionValue
        public let value: ExpressionValue
    }

    public private(set) var entries: [Entry] = []
    /// The index of the keys, only for maps with many entries.
    private var places: [Key: Int] = [:]
    private static let indexed = 8

    public var count: Int { entries.count }

    public init() {}

    /// Adds an entry. Returns false, and does not change the map, if the key exists already or has a type that is not valid
    /// for keys.
    public mutating func insert(_ value: ExpressionValue, for key: ExpressionValue) -> Bool {
        guard Self.isKey(key), let place = Key(key), find(place) == nil else { return false }
        entries.append(Entry(key: key, value: value))
        if entries.count > Self.indexed {
            if places.isEmpty {
                for (index, entry) in entries.enumerated() {
                    if let key = Key(entry.key) { places[key] = index }
                }
            } else {
                places[place] = entries.count - 1
            }
        }
        return true
    }

    /// Returns the value of a key. A double finds the entry of an equal integer.
    public func value(for key: ExpressionValue) -> ExpressionValue? {
        guard let key = Key(key), let index = find(key) else { return nil }
        return entries[index].value
    }

    /// Returns the value of a text key.
    public func value(for key: String) -> ExpressionValue? {
        find(.string(key)).map { entries[$0].value }
    }

    static func isKey(_ value: ExpressionValue) -> Bool {
        switch value {
        case .bool, .int, .uint, .string: true
        default: false
        }
    }

    private func find(_ key: Key) -> Int? {
        guard entries.count <= Self.indexed else { return places[key] }
        return entries.firstIndex { Key($0.key) == key }
    }
}

/// A key for lookups: numbers by their value, texts by their bytes.
private enum Key: Hashable {
    case bool(Bool)
    case int(Int64)
    case large(UInt64)
    case string(String)

    init?(_ value: ExpressionValue) {
        switch value {
        case .bool(let value): self = .bool(value)
        case .int(let value): self = .int(value)
        case .uint(let value): self = Int64(exactly: value).map(Key.int) ?? .large(value)
        case .double(let value):
            if let value = Int64(exactly: value) {
                self = .int(value)
            } else if let value = UInt64(exactly: value) {
                self = .large(value)
            } else {
                return nil
            }
        case .string(let text): self = .string(text)
        default: return nil
        }
    }

    static func == (one: Key, other: Key) -> Bool {
        switch (one, other) {
        case (.bool(let one), .bool(let other)): one == other
        case (.int(let one), .int(let other)): one == other
        case (.large(let one), .large(let other)): one == other
        case (.string(let one), .string(let other)): one.hasSameBytes(as: other)
        default: false
        }
    }

    func hash(into hasher: inout Hasher) {
        switch self {
        case .bool(let value): hasher.combine(value)
        case .int(let value): hasher.combine(value)
        case .large(let value): hasher.combine(value)
        case .string(let text):
            var text = text
            text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        }
    }
}
