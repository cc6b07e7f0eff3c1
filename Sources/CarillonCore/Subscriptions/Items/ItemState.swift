package import CarillonExpression

/// The values of an item after and before its last update.
package struct ItemState: Sendable {
    /// The effect of an update on a field that the update does not contain.
    package enum Mode: String, Sendable, CaseIterable {
        /// The field keeps its value.
        case merge
        /// The field is removed: each update is independent.
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
    /// The time of the last update; nil before the first.
    package private(set) var updatedAt: Timestamp?
    /// `fields` and `previous` as values of the condition language. They are made once for each update, because many conditions
    /// use both.
    package private(set) var fieldMap = ExpressionMap()
    package private(set) var previousMap: ExpressionMap?

    package init(_ mode: Mode) { self.mode = mode }

    /// Restores a stored state.
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

    /// The bytes of the fields, as counted for ``ItemLimits/itemBytes``.
    package var byteCount: Int { fields.reduce(0) { $0 + $1.key.utf8.count + $1.value.byteCount } }

    /// Returns the state with another mode, after a change of the app's rules.
    package func inMode(_ mode: Mode) -> ItemState {
        ItemState(mode, fields: fields, previous: previous, updatedAt: updatedAt)
    }
}
