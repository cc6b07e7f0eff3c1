/// What a publisher sends of an item.
package struct ItemUpdate: Sendable {
    package var fields: [String: ItemValue]
    /// Who says it, and its place in what that one says: what comes again is not taken again.
    package var place: Place?

    package struct Place: Equatable, Sendable {
        package var source: String
        package var sequence: Int64

        package init(source: String, sequence: Int64) {
            self.source = source
            self.sequence = sequence
        }
    }

    package init(_ fields: [String: ItemValue], place: Place? = nil) {
        self.fields = fields
        self.place = place
    }

    package var byteCount: Int { fields.reduce(64) { $0 + $1.key.utf8.count + $1.value.byteCount } }
}

/// What its publisher is told of it.
package struct ItemReceipt: Equatable, Sendable {
    /// How many updates the item has had with this one.
    package var version: Int64
    /// It came before, and nothing was done.
    package var isRepeated = false
}

/// An item, as the store keeps it.
package struct StoredItem: Sendable {
    package var state: ItemState
    /// How many updates it has had.
    package var version: Int64
    /// The last place in the sequence of each publisher, the one that wrote least recently first.
    package var places: [ItemUpdate.Place]

    package init(state: ItemState, version: Int64 = 0, places: [ItemUpdate.Place] = []) {
        self.state = state
        self.version = version
        self.places = places
    }

    /// Whether what a publisher says at a place was taken already.
    package func has(_ place: ItemUpdate.Place) -> Bool {
        places.contains { $0.source == place.source && $0.sequence >= place.sequence }
    }

    package mutating func note(_ place: ItemUpdate.Place) {
        places.removeAll { $0.source == place.source }
        places.append(place)
        if places.count > ItemLimits.sources { places.removeFirst() }
    }
}
