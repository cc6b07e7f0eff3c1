package import CarillonExpression

/// What stands in an item, and what stood there before its last update.
package struct ItemState: Sendable {
    /// What an update that does not name a field says of it.
    package enum Mode: String, Sendable, CaseIterable {
        /// It keeps its value.
        case merge
        /// It has none: each update stands for itself.
        case distinct
    }

    package struct Update: Sendable {
        package var fields: [String: ItemValue]
        package var at: Timestamp

        package init(_ fields: [String: ItemValue], at: Timestamp) {
            self.fields = fields
            self.at = at
        }
    }

    package let mode: Mode
    package private(set) var fields: [String: ItemValue] = [:]
    /// Nil before the second update.
    package private(set) var previous: [String: ItemValue]?
    /// When the last update came; nil before the first.
    package private(set) var updatedAt: Timestamp?
    /// Both as conditions see them. They are made once for an update, as there are many conditions and two looks at each of them.
    package private(set) var fieldMap = ExpressionMap()
    package private(set) var previousMap: ExpressionMap?

    package init(_ mode: Mode) { self.mode = mode }

    /// As it was stored.
    package init(
        _ mode: Mode, fields: [String: ItemValue], previous: [String: ItemValue]?, updatedAt: Timestamp?
    ) {
        self.mode = mode
        self.fields = fields
        self.previous = previous
        self.updatedAt = updatedAt
        fieldMap = Self.map(fields)
        previousMap = previous.map(Self.map)
    }

    package mutating func apply(_ update: Update) {
        if updatedAt != nil { (previous, previousMap) = (fields, fieldMap) }
        switch mode {
        case .merge: fields.merge(update.fields) { _, new in new }
        case .distinct: fields = update.fields
        }
        updatedAt = update.at
        fieldMap = Self.map(fields)
    }

    private static func map(_ fields: [String: ItemValue]) -> ExpressionMap {
        var map = ExpressionMap()
        for (name, value) in fields { _ = map.insert(value.value, for: .string(name)) }
        return map
    }

    /// What its fields count for in ``ItemLimits/itemBytes``.
    package var byteCount: Int { fields.reduce(0) { $0 + $1.key.utf8.count + $1.value.byteCount } }

    /// The same under another word of its app.
    package func inMode(_ mode: Mode) -> ItemState {
        ItemState(mode, fields: fields, previous: previous, updatedAt: updatedAt)
    }
}
