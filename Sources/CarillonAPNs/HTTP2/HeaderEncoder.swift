import NIOCore

/// Compresses the headers of requests (HPACK, RFC 7541) for one connection.
///
/// Recurring values are added to the peer's table once, and take one byte from then on. The path, IDs and expirations are
/// written out each time, so that a million tokens do not evict the other entries. Only their names are indexed.
///
/// Requests of one notification differ only in their path, so the encoded bytes before and after the path are stored and
/// copied.
struct HeaderEncoder {
    private struct Entry {
        var name: HeaderName
        var value: String
        var size: Int
    }

    private struct Template {
        var head: APNsRequestHead
        var authorization: ProviderToken?
        var insertions: Int
        var before: [UInt8]
        var after: [UInt8]
    }

    private let authority: String
    private let scheme: UInt8
    private let indexesAuthorization: Bool
    private var entries: [Entry] = []
    private var size = 0
    private var capacity = 4096
    /// The smallest table size since the last header block, if the size was changed. The peer must be informed of it before
    /// the present size (section 4.2).
    private var smallestCapacity: Int?
    private var insertions = 0
    private var templates: [Template] = []

    init(authority: String, isSecure: Bool = true, indexesAuthorization: Bool = true) {
        self.authority = authority
        scheme = isSecure ? 0x87 : 0x86
        self.indexesAuthorization = indexesAuthorization
    }

    /// Sets the table size that the peer announced. The table is never larger than 4096 bytes.
    mutating func peerLimitsTable(to bytes: Int) {
        let limit = min(bytes, 4096)
        guard limit != capacity else { return }
        smallestCapacity = min(smallestCapacity ?? limit, limit)
        capacity = limit
        evict(for: 0)
        templates = []
    }

    mutating func encode(
        _ head: APNsRequestHead, _ authorization: ProviderToken?, path: String, into buffer: inout ByteBuffer
    ) {
        if let smallestCapacity { announce(smallestCapacity, into: &buffer) }
        if let known = templates.first(where: { matches($0, head, authorization) }) {
            buffer.writeBytes(known.before)
            write(path: path, into: &buffer)
            buffer.writeBytes(known.after)
            return
        }
        let insertionsBefore = insertions
        let before = encodePseudoHeaders(of: head)
        let after = encodeFields(of: head, authorization)
        buffer.writeBytes(before)
        write(path: path, into: &buffer)
        buffer.writeBytes(after)
        guard insertions == insertionsBefore else { return }
        if templates.count >= 4 { templates.removeFirst() }
        templates.append(
            Template(
                head: head, authorization: authorization, insertions: insertions, before: before, after: after))
    }

    private mutating func announce(_ smallest: Int, into buffer: inout ByteBuffer) {
        var bytes: [UInt8] = []
        if smallest < capacity { Self.integer(smallest, prefix: 5, flags: 0x20, into: &bytes) }
        Self.integer(capacity, prefix: 5, flags: 0x20, into: &bytes)
        buffer.writeBytes(bytes)
        smallestCapacity = nil
    }

    private func matches(_ template: Template, _ head: APNsRequestHead, _ authorization: ProviderToken?) -> Bool {
        template.insertions == insertions && template.authorization === authorization
            && template.head.hasSameFields(as: head)
    }

    private mutating func encodePseudoHeaders(of head: APNsRequestHead) -> [UInt8] {
        var bytes: [UInt8] = []
        switch head.method {
        case .post: bytes.append(0x83)
        case .get: bytes.append(0x82)
        case .delete:
            bytes.append(0x02)
            Self.string("DELETE", into: &bytes)
        }
        bytes.append(scheme)
        encode(HeaderField(.authority, authority), into: &bytes)
        return bytes
    }

    private mutating func encodeFields(of head: APNsRequestHead, _ authorization: ProviderToken?) -> [UInt8] {
        var bytes: [UInt8] = []
        if let authorization {
            if indexesAuthorization {
                encode(HeaderField(.authorization, authorization.bearer), into: &bytes)
            } else {
                Self.integer(23, prefix: 4, flags: 0x10, into: &bytes)
                Self.string(authorization.bearer, into: &bytes)
            }
        }
        for field in head.fields { encode(field, into: &bytes) }
        return bytes
    }

    private mutating func encode(_ field: HeaderField, into bytes: inout [UInt8]) {
        if field.name.recurs, let index = index(of: field) {
            return Self.integer(index, prefix: 7, flags: 0x80, into: &bytes)
        }
        let name = field.name.staticIndex ?? indexOfName(field.name)
        let entrySize = field.name.rawValue.utf8.count + field.value.utf8.count + 32
        let isInserted = (field.name.recurs || name == nil) && entrySize <= capacity
        Self.integer(name ?? 0, prefix: isInserted ? 6 : 4, flags: isInserted ? 0x40 : 0x00, into: &bytes)
        if name == nil { Self.string(field.name.rawValue, into: &bytes) }
        Self.string(field.value, into: &bytes)
        guard isInserted else { return }
        evict(for: entrySize)
        entries.append(Entry(name: field.name, value: field.value, size: entrySize))
        size += entrySize
        insertions += 1
    }

    private func index(of field: HeaderField) -> Int? {
        entries.lastIndex { $0.name == field.name && $0.value == field.value }.map { 61 + entries.count - $0 }
    }

    private func indexOfName(_ name: HeaderName) -> Int? {
        entries.lastIndex { $0.name == name }.map { 61 + entries.count - $0 }
    }

    private mutating func evict(for bytes: Int) {
        while size + bytes > capacity, !entries.isEmpty {
            size -= entries.removeFirst().size
            // Indices are counted from the newest entry, so the indices of other entries do not change. A stored block may
            // refer to the removed entry.
            templates = []
        }
    }

    private func write(path: String, into buffer: inout ByteBuffer) {
        // A literal without indexing, with the name from the static table.
        buffer.writeInteger(0x04 as UInt8)
        var path = path
        path.withUTF8 { text in
            // The length of most paths takes one byte. After a longer length, the text is written again.
            let start = buffer.writerIndex
            buffer.writeInteger(0 as UInt8)
            var length: Int?
            buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: text.count) { target in
                length = HuffmanCode.encode(text, into: UnsafeMutableRawBufferPointer(rebasing: target.prefix(text.count)))
                return length ?? 0
            }
            if let length, length < 127 {
                buffer.setInteger(0x80 | UInt8(length), at: start)
            } else {
                buffer.moveWriterIndex(to: start)
                var bytes: [UInt8] = []
                Self.integer(text.count, prefix: 7, flags: 0, into: &bytes)
                buffer.writeBytes(bytes)
                buffer.writeBytes(text)
            }
        }
    }

    private static func string(_ text: String, into bytes: inout [UInt8]) {
        integer(text.utf8.count, prefix: 7, flags: 0, into: &bytes)
        bytes.append(contentsOf: text.utf8)
    }

    /// Writes an integer in the form of section 5.1.
    private static func integer(_ value: Int, prefix: Int, flags: UInt8, into bytes: inout [UInt8]) {
        let limit = (1 << prefix) - 1
        guard value >= limit else { return bytes.append(flags | UInt8(value)) }
        bytes.append(flags | UInt8(limit))
        var rest = value - limit
        while rest >= 128 {
            bytes.append(UInt8(rest & 127) | 128)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }
}
