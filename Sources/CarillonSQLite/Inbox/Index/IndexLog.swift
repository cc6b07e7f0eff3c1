import CarillonCore

/// Changes of ``InboxIndex``, as one commit appends them to `inbox_log`: for each a byte that says which it is, the key, the
/// position and the size, big-endian.
struct IndexLog {
    enum Change: Equatable {
        case added(InboxIndex.Slot, InboxIndex.Key)
        case removed(Int64, InboxIndex.Key)
    }

    private(set) var bytes: [UInt8] = []
    /// How many were added.
    private(set) var additions = 0

    var isEmpty: Bool { bytes.isEmpty }

    mutating func note(_ change: Change) {
        switch change {
        case .added(let slot, let key):
            additions += 1
            append(0, key, slot.position, slot.size)
        case .removed(let position, let key):
            append(1, key, position, 0)
        }
    }

    private mutating func append(_ what: UInt8, _ key: InboxIndex.Key, _ position: Int64, _ size: Int) {
        bytes.append(what)
        withUnsafeBytes(of: key.number.bigEndian) { bytes.append(contentsOf: $0) }
        withUnsafeBytes(of: position.bigEndian) { bytes.append(contentsOf: $0) }
        withUnsafeBytes(of: UInt32(clamping: size).bigEndian) { bytes.append(contentsOf: $0) }
    }

    private static let entryBytes = 21

    /// - Throws: ``StoreFault`` for what this did not write.
    static func changes(in bytes: some RandomAccessCollection<UInt8>) throws(StoreFault) -> [Change] {
        guard bytes.count % entryBytes == 0 else { throw damage }
        var changes: [Change] = []
        changes.reserveCapacity(bytes.count / entryBytes)
        var rest = bytes[...]
        while let what = rest.first {
            let entry = rest.prefix(entryBytes)
            rest = rest.dropFirst(entryBytes)
            let key = InboxIndex.Key(number: Int64(bitPattern: number(entry.dropFirst().prefix(8))))
            let position = Int64(bitPattern: number(entry.dropFirst(9).prefix(8)))
            switch what {
            case 0: changes.append(.added(.init(position: position, size: Int(number(entry.suffix(4)))), key))
            case 1: changes.append(.removed(position, key))
            default: throw damage
            }
        }
        return changes
    }

    private static func number(_ bytes: some Sequence<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }

    private static let damage = StoreFault(.damaged, "the log of the inboxes' index cannot be read")
}
