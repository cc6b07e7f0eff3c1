/// The `name=value` pairs of a header, separated by `;` or `,`, as the encryption headers of Web Push and VAPID have
/// them. Names are compared without case; quotes around a value are taken off. The first of equal names counts.
package struct HeaderParameters: Sendable {
    package private(set) var pairs: [(name: String, value: String)] = []

    package init(_ text: some StringProtocol) {
        for part in text.split(whereSeparator: { $0 == ";" || $0 == "," }) {
            guard let equals = part.firstIndex(of: "=") else { continue }
            let name = Self.trimmed(part[..<equals]).lowercased()
            var value = Self.trimmed(part[part.index(after: equals)...])
            if value.count >= 2, value.first == "\"", value.last == "\"" { value = String(value.dropFirst().dropLast()) }
            pairs.append((name, value))
        }
    }

    package subscript(name: String) -> String? { pairs.first { $0.name == name }?.value }

    private static func trimmed(_ text: some StringProtocol) -> String {
        let start = text.firstIndex { $0 != " " && $0 != "\t" } ?? text.endIndex
        guard let end = text.lastIndex(where: { $0 != " " && $0 != "\t" }) else { return "" }
        return String(text[start...end])
    }
}
