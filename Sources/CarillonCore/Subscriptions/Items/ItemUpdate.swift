/// An update of an item, as sent by a publisher.
package struct ItemUpdate: Sendable {
    package var fields: [String: ItemValue]
    /// The source of the update and its sequence number. A repeated update is not applied again.
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

/// The result of an update for its publisher.
package struct ItemReceipt: Equatable, Sendable {
    /// The number of updates of the item, including this one.
    package var version: Int64
    /// Whether the update was accepted before, so that this request changed nothing.
    package var isRepeated = false
}

/// An item in the store.
package struct StoredItem: Sendable {
    package var state: ItemState
    /// The number of updates of the item.
    package var version: Int64
    /// The last sequence number of each source. The source with the oldest update is first.
    package var places: [ItemUpdate.Place]

    package init(state: ItemState, version: Int64 = 0, places: [ItemUpdate.Place] = []) {
        self.state = state
        self.version = version
        self.places = places
    }

    /// Whether an update with this source and sequence number, or a later one of the source, was accepted before.
    package func has(_ place: ItemUpdate.Place) -> Bool {
        places.contains { $0.source == place.source && $0.sequence >= place.sequence }
    }

    package mutating func note(_ place: ItemUpdate.Place) {
        places.removeAll { $0.source == place.source }
        places.append(place)
        if places.count > ItemLimits.sources { places.removeFirst() }
    }
}
