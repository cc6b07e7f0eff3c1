/// A place in the text of a condition.
public struct ExpressionPosition: Sendable, Hashable {
    /// Code points before it.
    public let offset: Int
    /// From 1.
    public let line: Int
    /// From 1, in code points.
    public let column: Int

    init(utf8Offset: Int, in source: String) {
        let before = source.utf8.prefix(utf8Offset)
        // In pieces of code points, as UTF-8 marks their beginnings.
        let scalars = before.filter { $0 & 0xC0 != 0x80 }
        offset = scalars.count
        line = 1 + scalars.count { $0 == UInt8(ascii: "\n") }
        column = scalars.reversed().prefix { $0 != UInt8(ascii: "\n") }.count + 1
    }
}
