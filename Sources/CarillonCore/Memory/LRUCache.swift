/// A cache of limited size. When the newer half is full, the older half is removed. A value that is read moves to the newer half.
///
/// The cache contains at most twice its capacity. The methods are inlinable, so that other modules can specialize them for their
/// types.
package struct LRUCache<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    @usableFromInline var newer: [Key: Value] = [:]
    @usableFromInline var older: [Key: Value] = [:]
    @usableFromInline let capacity: Int

    @inlinable package init(capacity: Int) { self.capacity = capacity }

    @inlinable package var count: Int { newer.count + older.count }

    /// Whether the cache contains a key. This does not move the key to the newer half.
    @inlinable package func contains(_ key: Key) -> Bool { newer[key] != nil || older[key] != nil }

    @inlinable package subscript(key: Key) -> Value? {
        @inline(__always) mutating get {
            if let value = newer[key] { return value }
            guard let value = older.removeValue(forKey: key) else { return nil }
            self[key] = value
            return value
        }
        @inline(__always) set {
            older[key] = nil
            guard let newValue else {
                newer[key] = nil
                return
            }
            if newer.count >= capacity, newer[key] == nil {
                older = newer
                newer = [:]
            }
            newer[key] = newValue
        }
    }

    /// Removes the values of all keys that meet a condition.
    @inlinable package mutating func removeAll(where isRemoved: (Key) -> Bool) {
        for key in newer.keys.filter(isRemoved) { newer[key] = nil }
        for key in older.keys.filter(isRemoved) { older[key] = nil }
    }

    /// Removes the values that meet a condition.
    @inlinable package mutating func removeValues(where isRemoved: (Value) -> Bool) {
        newer = newer.filter { !isRemoved($0.value) }
        older = older.filter { !isRemoved($0.value) }
    }

    @inlinable package mutating func removeAll() {
        newer = [:]
        older = [:]
    }
}
