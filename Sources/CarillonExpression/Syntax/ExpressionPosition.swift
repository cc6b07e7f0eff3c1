/// A position in the text of a condition.
public struct ExpressionPosition: Sendable, Hashable {
    /// The number of code points before the position.
    public let offset: Int
    /// The line, from 1.
    public let line: Int
    /// The column in code points, from 1.
    public let column: Int

    init(utf8Offset: Int, in source: String) {
        let before = source.utf8.prefix(utf8Offset)
        // A code point starts with each byte that is not a continuation byte of UTF-8.
        let scalars = before.filter { $0 & 0xC0 != 0x80 }
        offset = scalars.count
        line = 1 + scalars.count { $0 == UInt8(ascii: "\n") }
        column = scalars.reversed().prefix { $0 != UInt8(ascii: "\n") }.count + 1
    }
}
