package import CarillonExpression

/// Values as rows hold them: the constants of a condition, and the fields of an item.
package enum ValueCoding {
    /// Nil where one of them is of a kind that no row holds.
    package static func encode(_ values: [ExpressionValue]) -> [UInt8]? {
        var writer = ByteWriter()
        for value in values { guard writer.value(value, depth: 0) else { return nil } }
        return writer.bytes
    }

    /// Nil where the bytes are none of ``encode(_:)-(_)``.
    package static func values(_ bytes: [UInt8]) -> [ExpressionValue]? {
        var reader = ByteReader(bytes)
        var values: [ExpressionValue] = []
        while !reader.isAtEnd {
            guard let value = reader.value(depth: 0) else { return nil }
            values.append(value)
        }
        return values
    }

    package static func encode(_ texts: [String]) -> [UInt8] {
        var writer = ByteWriter()
        for text in texts { writer.string(text) }
        return writer.bytes
    }

    /// Encodes fields in the order of their names, so that equal fields are equal bytes. Nil where a value is of a kind that no row holds.
    package static func encode(_ fields: [String: ItemValue]) -> [UInt8]? {
        var writer = ByteWriter()
        for (name, field) in fields.sorted(by: { $0.key < $1.key }) {
            writer.text(name)
            writer.text(field.digits ?? "")
            guard writer.value(field.value, depth: 0) else { return nil }
        }
        return writer.bytes
    }

    package static func fields(_ bytes: [UInt8]) -> [String: ItemValue]? {
        var reader = ByteReader(bytes)
        var fields: [String: ItemValue] = [:]
        while !reader.isAtEnd {
            guard let name = reader.text(), let digits = reader.text(), let value = reader.value(depth: 0) else {
                return nil
            }
            fields[name] = ItemValue(value, digits: digits.isEmpty ? nil : digits)
        }
        return fields
    }

    /// Pairs of whole numbers, each written as its distance from the one before.
    package static func encode(_ pairs: [(Int64, Int64)]) -> [UInt8] {
        var writer = ByteWriter()
        var last: (Int64, Int64) = (0, 0)
        for pair in pairs {
            writer.signed(pair.0 &- last.0)
            writer.signed(pair.1 &- last.1)
            last = pair
        }
        return writer.bytes
    }

    package static func pairs(_ bytes: [UInt8]) -> [(Int64, Int64)]? {
        var reader = ByteReader(bytes)
        var pairs: [(Int64, Int64)] = []
        var last: (Int64, Int64) = (0, 0)
        while !reader.isAtEnd {
            guard let first = reader.signed(), let second = reader.signed() else { return nil }
            last = (last.0 &+ first, last.1 &+ second)
            pairs.append(last)
        }
        return pairs
    }
}

private enum Tag: UInt8 {
    case null, no, yes, int, uint, double, string, bytes, list, timestamp, duration
}

/// Lists in lists are as deep as conditions may be.
private let deepest = 250

private struct ByteWriter {
    var bytes: [UInt8] = []

    mutating func unsigned(_ value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }

    mutating func signed(_ value: Int64) { unsigned(UInt64(bitPattern: value << 1 ^ value >> 63)) }

    mutating func text(_ value: String) {
        unsigned(UInt64(value.utf8.count))
        bytes += value.utf8
    }

    mutating func string(_ value: String) {
        tag(.string)
        text(value)
    }

    private mutating func tag(_ tag: Tag) { bytes.append(tag.rawValue) }

    mutating func value(_ value: ExpressionValue, depth: Int) -> Bool {
        switch value {
        case .null: tag(.null)
        case .bool(let value): tag(value ? .yes : .no)
        case .int(let value):
            tag(.int)
            signed(value)
        case .uint(let value):
            tag(.uint)
            unsigned(value)
        case .double(let value):
            tag(.double)
            withUnsafeBytes(of: value.bitPattern.littleEndian) { bytes += $0 }
        case .string(let value): string(value)
        case .bytes(let value):
            tag(.bytes)
            unsigned(UInt64(value.count))
            bytes += value
        case .list(let values):
            guard depth < deepest else { return false }
            tag(.list)
            unsigned(UInt64(values.count))
            for value in values { guard self.value(value, depth: depth + 1) else { return false } }
        case .timestamp(let value):
            tag(.timestamp)
            signed(value.seconds)
            signed(Int64(value.nanoseconds))
        case .duration(let value):
            tag(.duration)
            signed(value.nanoseconds)
        case .map, .type: return false
        }
        return true
    }
}

private struct ByteReader {
    private let bytes: [UInt8]
    private var place = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    var isAtEnd: Bool { place == bytes.count }

    mutating func unsigned() -> UInt64? {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while place < bytes.count, shift < 64 {
            let byte = bytes[place]
            place += 1
            value |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return value }
            shift += 7
        }
        return nil
    }

    mutating func signed() -> Int64? {
        unsigned().map { Int64(bitPattern: $0 >> 1) ^ -Int64(bitPattern: $0 & 1) }
    }

    private mutating func some(_ count: UInt64) -> ArraySlice<UInt8>? {
        guard count <= bytes.count - place else { return nil }
        defer { place += Int(count) }
        return bytes[place..<place + Int(count)]
    }

    mutating func text() -> String? {
        unsigned().flatMap { some($0) }.flatMap { String(validating: $0, as: UTF8.self) }
    }

    mutating func value(depth: Int) -> ExpressionValue? {
        guard depth <= deepest, let tag = some(1)?.first.flatMap(Tag.init(rawValue:)) else { return nil }
        switch tag {
        case .null: return .null
        case .no: return .bool(false)
        case .yes: return .bool(true)
        case .int: return signed().map { .int($0) }
        case .uint: return unsigned().map { .uint($0) }
        case .double: return some(8).map { .double(Double(bitPattern: $0.reversed().reduce(0) { $0 << 8 | UInt64($1) })) }
        case .string: return text().map { .string($0) }
        case .bytes: return unsigned().flatMap { some($0) }.map { .bytes(Array($0)) }
        case .list:
            guard let count = unsigned(), count <= bytes.count - place else { return nil }
            var values: [ExpressionValue] = []
            for _ in 0..<count {
                guard let value = value(depth: depth + 1) else { return nil }
                values.append(value)
            }
            return .list(values)
        case .timestamp:
            guard let seconds = signed(), let nanoseconds = signed().flatMap(Int32.init(exactly:)) else { return nil }
            return ExpressionTimestamp(seconds: seconds, nanoseconds: nanoseconds).map { .timestamp($0) }
        case .duration: return signed().map { .duration(ExpressionDuration(nanoseconds: $0)) }
        }
    }
}
