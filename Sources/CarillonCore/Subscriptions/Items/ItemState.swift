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

    package init(_ mode: Mode) { self.mode = mode }

    /// As it was stored.
    package init(
        _ mode: Mode, fields: [String: ItemValue], previous: [String: ItemValue]?, updatedAt: Timestamp
    ) {
        self.mode = mode
        self.fields = fields
        self.previous = previous
        self.updatedAt = updatedAt
    }

    package mutating func apply(_ update: Update) {
        if updatedAt != nil { previous = fields }
        switch mode {
        case .merge: fields.merge(update.fields) { _, new in new }
        case .distinct: fields = update.fields
        }
        updatedAt = update.at
    }

    /// What its fields count for in ``ItemLimits/itemBytes``.
    package var byteCount: Int { fields.reduce(0) { $0 + $1.key.utf8.count + $1.value.byteCount } }

    /// The same under another word of its app.
    package func inMode(_ mode: Mode) -> ItemState {
        var state = ItemState(mode)
        (state.fields, state.previous, state.updatedAt) = (fields, previous, updatedAt)
        return state
    }
}
