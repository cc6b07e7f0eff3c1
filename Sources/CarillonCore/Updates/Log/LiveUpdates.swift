import CarillonBasics
package import CarillonWire

/// The live updates of an app, in the order in which they were published, with an index by the values that audiences require.
package struct LiveUpdates: Sendable {
    package enum Wanted: Sendable {
        case everyone
        case some(Audience)
        /// No device, because the audience cannot be parsed.
        case unreadable
    }

    package struct Entry: Sendable {
        package var update: Update
        package var audience: Wanted
        /// The change of content; nil for other kinds.
        package var change: ContentChange?
        /// The keys in the index; nil if the update is a candidate for every device.
        var keys: [Audience.Key]?

        fileprivate var weight: Int {
            let program = if case .some(let audience) = audience { audience.weight } else { 0 }
            return update.body.count + update.audienceBytes + program + LiveUpdates.bytesPerKey * (keys?.count ?? 0)
        }
    }

    /// The approximate bytes of a key in the array of an entry and in the index, with a set of one update.
    private static let bytesPerKey = 256

    private var entries: [UpdateSerial: Entry] = [:]
    /// Ascending.
    private var serials: [UpdateSerial] = []
    private var keyed: [Audience.Key: Set<UpdateSerial>] = [:]
    private var unkeyed: Set<UpdateSerial> = []

    package init() {}

    package var count: Int { entries.count }
    /// The approximate memory of all updates, in bytes.
    package private(set) var weight = 0
    /// The latest live update; zero if the app has no live updates.
    package var last: UpdateSerial { serials.last ?? UpdateSerial(0) }
    package var serialsInOrder: [UpdateSerial] { serials }

    package subscript(serial: UpdateSerial) -> Entry? { entries[serial] }

    package mutating func insert(_ update: Update, _ audience: Wanted) {
        guard entries[update.serial] == nil else { return }
        let keys: [Audience.Key]? =
            switch audience {
            case .everyone: nil
            case .unreadable: []
            case .some(let audience): audience.lookup.map { rarest(of: $0) }
            }
        let entry = Entry(update: update, audience: audience, change: update.change, keys: keys)
        entries[update.serial] = entry
        weight += entry.weight
        let place = serials.lastIndex { $0 < update.serial }.map { $0 + 1 } ?? 0
        serials.insert(update.serial, at: place)
        if let keys {
            for key in keys { keyed[key, default: []].insert(update.serial) }
        } else {
            unkeyed.insert(update.serial)
        }
    }

    package mutating func remove(_ serial: UpdateSerial) {
        guard let entry = entries.removeValue(forKey: serial) else { return }
        weight -= entry.weight
        serials.removeAll { $0 == serial }
        unkeyed.remove(serial)
        for key in entry.keys ?? [] {
            keyed[key]?.remove(serial)
            if keyed[key]?.isEmpty == true { keyed[key] = nil }
        }
    }

    /// Returns the keys of a lookup. If alternatives exist, returns the keys with the fewest updates.
    private func rarest(of lookup: Audience.Lookup) -> [Audience.Key] {
        switch lookup {
        case .keys(let keys): keys
        case .any(let lookups): lookups.flatMap { rarest(of: $0) }
        case .all(let lookups): lookups.map { rarest(of: $0) }.min { size(of: $0) < size(of: $1) } ?? []
        }
    }

    private func size(of keys: [Audience.Key]) -> Int { keys.reduce(0) { $0 + (keyed[$1]?.count ?? 0) } }

    /// Returns the updates after a place that may match a device, ascending. All matching updates are included.
    package func candidates(for facts: DeviceFacts, after place: UpdateSerial) -> [UpdateSerial] {
        guard last > place else { return [] }
        var found = unkeyed.filter { $0 > place }
        for key in facts.keys {
            for serial in keyed[key] ?? [] where serial > place { found.insert(serial) }
        }
        return found.sorted()
    }
}

extension Update {
    package var audienceBytes: Int { audience?.utf8.count ?? 0 }

    fileprivate var change: ContentChange? {
        guard kind == .content,
            case .content(let change)? = try? UpdatePayload(JSONValue(parsing: body)?["payload"], of: kind)
        else { return nil }
        return change
    }
}
