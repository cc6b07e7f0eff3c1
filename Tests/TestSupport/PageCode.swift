package import Foundation

/// The Swift code of the documentation. A test has the same code, so that it is compiled and run, and compares the two.
package enum PageCode {
    /// The root of the package.
    package static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// Returns the Swift blocks of a page, each in the form of `plain(_:)`.
    package static func blocks(of page: String) throws -> [String] {
        let text = try String(contentsOf: root.appending(path: page), encoding: .utf8)
        return text.matches(of: /```swift\n(?<code>(?s:.*?))```/).map { plain(String($0.code)) }
    }

    /// Returns the code without line breaks and indentation, which the formatter decides.
    package static func plain(_ code: String) -> String {
        code.split(whereSeparator: \.isWhitespace).joined(separator: " ").replacing("( ", with: "(").replacing(
            " )", with: ")")
    }

    /// Returns the code without the imports at its beginning, which a test has at the beginning of its file.
    package static func withoutImports(_ code: String) -> String {
        code.replacing(/^(?:import \w+ )+/, with: "")
    }
}
