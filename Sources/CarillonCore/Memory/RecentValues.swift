/// A memory of limited size. When the newer half is full, the older half is forgotten; what is looked at becomes new.
///
/// It holds at most twice its capacity.
package struct RecentValues<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private var newer: [Key: Value] = [:]
    private var older: [Key: Value] = [:]
    private let capacity: Int

    package init(capacity: Int) { self.capacity = capacity }

    package var count: Int { newer.count + older.count }

    package subscript(key: Key) -> Value? {
        mutating get {
            if let value = newer[key] { return value }
            guard let value = older.removeValue(forKey: key) else { return nil }
            self[key] = value
            return value
        }
        set {
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

    package mutating func removeAll() {
        newer = [:]
        older = [:]
    }
}
