/// Which part of a file a request asks for (RFC 9110 section 14).
enum RangeHeader: Equatable {
    /// All of it: nothing else was asked for, or nothing that is understood.
    case whole
    case part(Range<Int64>)
    /// What was asked for lies beyond the end.
    case unsatisfiable

    init(_ text: String?, length: Int64) {
        self = text.flatMap { Self.read($0, length) } ?? .whole
    }

    /// Nil for what is passed over: another unit, several parts, or no range at all.
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

    /// The outer nil is for what is no number; the inner for nothing.
    private static func number(_ text: Substring) -> Int64?? {
        if text.isEmpty { return .some(nil) }
        guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return .some(Int64(text) ?? .max)
    }
}
