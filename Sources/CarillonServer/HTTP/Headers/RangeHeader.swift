/// The requested part of a file (RFC 9110 section 14).
enum RangeHeader: Equatable {
    /// The whole file, because the request has no valid range.
    case whole
    case part(Range<Int64>)
    /// The requested part is beyond the end of the file.
    case unsatisfiable

    init(_ text: String?, length: Int64) {
        self = text.flatMap { Self.read($0, length) } ?? .whole
    }

    /// Returns nil for values that are ignored: another unit, several parts, or an invalid range.
    private static func read(_ text: String, _ length: Int64) -> RangeHeader? {
        guard text.lowercased().hasPrefix("bytes=") else { return nil }
        let ends = text.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2 else { return nil }
        switch (number(ends[0]), number(ends[1])) {
        case (.some(nil), .some(let suffix?)):
            guard suffix > 0, length > 0 else { return .unsatisfiable }
            return .part(max(0, length - suffix)..<length)
        case (.some(let first?), .some(let last)):
            if let last, last < first { return nil }
            guard first < length else { return .unsatisfiable }
            return .part(first..<(min(last ?? .max, length - 1) + 1))
        default: return nil
        }
    }

    /// The outer nil means an invalid number; the inner nil an empty text.
    private static func number(_ text: Substring) -> Int64?? {
        if text.isEmpty { return .some(nil) }
        guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return .some(Int64(text) ?? .max)
    }
}
