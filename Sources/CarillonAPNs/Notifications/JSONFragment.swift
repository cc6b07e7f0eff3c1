import CarillonBasics

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// One JSON value. It is encoded when the caller sets it, so the payload that is shown and the payload that is sent cannot
/// differ.
struct JSONFragment: Hashable, Sendable {
    let bytes: [UInt8]

    init(bytes: [UInt8]) { self.bytes = bytes }

    /// Whether the bytes are one JSON value with at most 64 levels.
    static func holds(_ bytes: [UInt8]) -> Bool { JSONValue(parsing: bytes, depth: depth) != nil }

    static let depth = 63

    var isObject: Bool { bytes.first { !Self.space.contains($0) } == UInt8(ascii: "{") }

    private static let space: [UInt8] = [0x20, 0x09, 0x0A, 0x0D]

    /// Encodes with Foundation's defaults, with which a device decodes Live Activities: a `Date` is a number of seconds since
    /// 2001. Keys are sorted, so that equal values are equal bytes.
    init(encoding value: some Encodable) throws {
        var writer = JSONWriter(capacity: 32)
        switch value {
        case let text as String: writer.string(text)
        case let flag as Bool: self.bytes = Array((flag ? "true" : "false").utf8); return
        case let integer as Int: writer.integer(Int64(integer))
        default:
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            bytes = Array(try encoder.encode(value))
            return
        }
        bytes = writer.bytes
    }
}

extension JSONWriter {
    mutating func member(_ name: StaticString, _ fragment: JSONFragment?) { member(name, text: fragment?.bytes) }
    mutating func fragment(_ fragment: JSONFragment) { text(fragment.bytes) }
}

/// Describes why a value cannot be encoded, without any part of its content.
enum EncodingFault {
    static func describe(_ error: any Error, of value: some Encodable) -> String {
        guard case EncodingError.invalidValue(_, let context) = error else { return "\(type(of: value)) encodes nothing." }
        // The names in the path are the caller's data.
        let place = context.codingPath.compactMap(\.intValue).last.map { ", at index \($0)." } ?? "."
        return "\(type(of: value)) contains a value that JSON does not support\(place)"
    }
}
