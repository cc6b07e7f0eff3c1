import CarillonCore

/// Changes of ``InboxIndex``, as one commit appends them to `inbox_log`. Each change is one byte for its kind, the key, the
/// position and the size, in big-endian order.
struct IndexLog {
    enum Change: Equatable {
        case added(InboxIndex.Slot, InboxIndex.Key)
        case removed(Int64, InboxIndex.Key)
    }

    private(set) var bytes: [UInt8] = []
    /// The number of added entries.
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

    /// Reads the changes that a commit appended.
    ///
    /// - Throws: ``StoreFault`` if the bytes are not valid.
    static func forEachChange(
        in bytes: UnsafeRawBufferPointer, _ body: (Change) -> Void
    ) throws(StoreFault) {
        guard bytes.count % entryBytes == 0 else { throw damage }
        for start in stride(from: 0, to: bytes.count, by: entryBytes) {
            func number<Value: FixedWidthInteger>(at offset: Int, as type: Value.Type) -> Value {
                Value(bigEndian: bytes.loadUnaligned(fromByteOffset: start + offset, as: type))
            }
            let key = InboxIndex.Key(number: number(at: 1, as: Int64.self))
            let position = number(at: 9, as: Int64.self)
            switch bytes[start] {
            case 0: body(.added(.init(position: position, size: Int(number(at: 17, as: UInt32.self))), key))
            case 1: body(.removed(position, key))
            default: throw damage
            }
        }
    }

    private static let damage = StoreFault(.damaged, "the log of the inbox index cannot be read")
}
