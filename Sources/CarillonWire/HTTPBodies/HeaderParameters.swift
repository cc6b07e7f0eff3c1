/// The `name=value` pairs of a header, in the form of VAPID and of Web Push's encryption headers. Pairs are separated by `;`, and
/// groups of pairs by `,`.
///
/// Names are compared without case. A quoted value can contain either separator, and is returned without its quotes. A value with
/// unbalanced quotes is read as an unquoted value. If a name is repeated, the first pair counts.
package struct HeaderParameters: Sendable {
    package typealias Pair = (name: String, value: String)

    package private(set) var groups: [[Pair]] = []

    package var pairs: [Pair] { groups.flatMap(\.self) }

    package init(_ text: some StringProtocol) {
        var text = Substring(text)
        var group: [Pair] = []
        while let part = Self.takePart(&text) {
            if let pair = part.pair { group.append(pair) }
            if part.endsGroup {
                groups.append(group)
                group = []
            }
        }
        groups.append(group)
        groups.removeAll(where: \.isEmpty)
    }

    package subscript(name: String) -> String? {
        for group in groups {
            if let value = group[parameter: name] { return value }
        }
        return nil
    }

    private struct Part {
        var pair: Pair?
        var endsGroup = false
    }

    private static func takePart(_ text: inout Substring) -> Part? {
        if text.isEmpty { return nil }
        var part = Part()
        let name = text.prefix { $0 != "=" && !isSeparator($0) }
        text = text[name.endIndex...]
        if text.first == "=" {
            text = text.dropFirst()
            part.pair = (trimmed(name).lowercased(), takeQuoted(&text) ?? takeBare(&text))
        }
        if let separator = text.popFirst() { part.endsGroup = separator == "," }
        return part
    }

    private static func isSeparator(_ character: Character) -> Bool { character == ";" || character == "," }

    private static func takeBare(_ text: inout Substring) -> String {
        let value = text.prefix { !isSeparator($0) }
        text = text[value.endIndex...]
        return trimmed(value).filter { $0 != "\"" }
    }

    /// Reads a quoted string (RFC 9110 section 5.6.4). Returns nil, and consumes nothing, if no quoted string precedes the next
    /// separator.
    private static func takeQuoted(_ text: inout Substring) -> String? {
        var rest = text.drop { $0 == " " || $0 == "\t" }
        guard rest.popFirst() == "\"" else { return nil }
        var value = ""
        while let character = rest.popFirst() {
            if character == "\"" {
                rest = rest.drop { $0 == " " || $0 == "\t" }
                guard rest.first.map(isSeparator) ?? true else { return nil }
                text = rest
                return value
            }
            guard character == "\\" else {
                value.append(character)
                continue
            }
            guard let escaped = rest.popFirst() else { return nil }
            value.append(escaped)
        }
        return nil
    }

    private static func trimmed(_ text: Substring) -> String {
        let start = text.firstIndex { $0 != " " && $0 != "\t" } ?? text.endIndex
        guard let end = text.lastIndex(where: { $0 != " " && $0 != "\t" }) else { return "" }
        return String(text[start...end])
    }
}

extension [HeaderParameters.Pair] {
    package subscript(parameter name: String) -> String? { first { $0.name == name }?.value }
}
