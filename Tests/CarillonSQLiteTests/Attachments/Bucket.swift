import CarillonCore
import Synchronization

/// A bucket of an object store. Objects are written, read and removed as a whole or by range; they do not grow, and have no other names. A
/// list has no order.
final class Bucket: Sendable {
    struct Object: Sendable {
        var bytes: [UInt8]
        /// Another one for each content.
        var tag: Int
        var changedAt: Timestamp
    }

    private struct State {
        var objects: [String: Object] = [:]
        var lastTag = 0
        /// The number of bytes that fit; nil if nothing limits them.
        var room: Int?
    }

    private let state = Mutex(State())

    static let listedAtOnce = 7

    func setRoom(_ room: Int?) { state.withLock { $0.room = room } }

    func put(_ bytes: [UInt8], as key: String, ifAbsent: Bool = false) throws {
        try state.withLock { state in
            guard !ifAbsent || state.objects[key] == nil else { throw StoreFault(.unavailable, "the object exists") }
            let growth = bytes.count - (state.objects[key]?.bytes.count ?? 0)
            if let room = state.room {
                guard growth <= room else { throw StoreFault(.full, "the bucket is full") }
                state.room = room - growth
            }
            state.lastTag += 1
            state.objects[key] = Object(bytes: bytes, tag: state.lastTag, changedAt: Timestamp(milliseconds: 1))
        }
    }

    func object(_ key: String) -> Object? { state.withLock { $0.objects[key] } }

    func remove(_ key: String) {
        state.withLock { state in
            let removed = state.objects.removeValue(forKey: key)
            state.room = state.room.map { $0 + (removed?.bytes.count ?? 0) }
        }
    }

    /// Returns the keys with a prefix that begin behind a token, and the token of the next page.
    func keys(prefix: String, after token: String?) -> (keys: [String], next: String?) {
        state.withLock { state in
            let keys = state.objects.keys.filter { $0.hasPrefix(prefix) }.sorted().filter { $0 > token ?? "" }
            let page = keys.prefix(Self.listedAtOnce)
            return (page.shuffled(), page.count < keys.count ? page.last : nil)
        }
    }

    /// Returns all keys with a prefix.
    func keys(prefix: String) -> [String] {
        state.withLock { $0.objects.keys.filter { $0.hasPrefix(prefix) } }
    }
}
