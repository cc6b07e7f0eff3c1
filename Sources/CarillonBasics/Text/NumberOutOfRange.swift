/// A number in a JSON text that is too large for `Double`, such as `1e999`, and its position.
package struct NumberOutOfRange: Equatable, Sendable {
    /// The first 32 characters of the number.
    package let number: String
    /// The member names and indexes on the path to the number, outermost first. Empty for a top-level number.
    package let path: [String]
    /// The line of the number, from 1.
    package let line: Int
    /// The column in which the number starts, in bytes, from 1.
    package let column: Int

    /// Finds the first such number. Returns nil if the text has no such number, or is otherwise not valid JSON.
    ///
    /// - Parameter depth: How deep objects and arrays can lie in the text.
    package init?(in text: [UInt8], depth: Int = 32) {
        let found = text.withUnsafeBufferPointer { bytes -> (place: Range<Int>, path: [String])? in
            var reader = JSONReader(text: bytes, depthLimit: depth, passesOutOfRange: true)
            guard reader.readText() != nil, let place = reader.outOfRange else { return nil }
            return (place, Array(reader.path.reversed()))
        }
        guard let found else { return nil }
        let before = text[..<found.place.lowerBound]
        number = String(decoding: text[found.place].prefix(32), as: UTF8.self)
        path = found.path
        line = before.count { $0 == UInt8(ascii: "\n") } + 1
        column = before.reversed().prefix { $0 != UInt8(ascii: "\n") }.count + 1
    }

    /// Describes the problem and its position, without a full stop. Contains no part of the text.
    package var clause: String { "the number in \(place)" }

    /// The same clause with the number, for the author of the text.
    package var clauseWithNumber: String { "the number \(number) in \(place)" }

    private var place: String { "line \(line), column \(column) is out of range; the limit is 1.8e308" }
}
