extension String {
    /// On one line, and harmless to a terminal, whoever wrote it.
    var withoutControls: String {
        guard unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) else { return self }
        return String(
            String.UnicodeScalarView(unicodeScalars.map { $0.properties.generalCategory == .control ? " " : $0 }))
    }

    /// The same on one line, with everything in it: what could forge a line or turn the reading direction is written as
    /// in Swift source, and a backslash twice.
    var escapingControls: String {
        var text = ""
        for scalar in unicodeScalars {
            switch scalar {
            case "\\": text += #"\\"#
            case "\n": text += #"\n"#
            case "\r": text += #"\r"#
            case "\t": text += #"\t"#
            case "\u{61c}", "\u{200e}", "\u{200f}", "\u{2028}"..."\u{202e}", "\u{2066}"..."\u{2069}":
                text += "\\u{\(String(scalar.value, radix: 16))}"
            case _ where scalar.properties.generalCategory == .control:
                text += "\\u{\(String(scalar.value, radix: 16))}"
            default: text.unicodeScalars.append(scalar)
            }
        }
        return text
    }

    /// The same, with its lines.
    var forTerminal: String {
        split(separator: "\n", omittingEmptySubsequences: false).map { String($0).withoutControls }
            .joined(separator: "\n")
    }

    func padding(to width: Int, atStart: Bool = false) -> String {
        let spaces = String(repeating: " ", count: max(0, width - count))
        return atStart ? spaces + self : self + spaces
    }
}

extension BinaryInteger {
    /// With commas between groups of three digits.
    var grouped: String {
        var text = ""
        for (index, digit) in String(self).reversed().enumerated() {
            if index > 0, index.isMultiple(of: 3), digit != "-" { text.append(",") }
            text.append(digit)
        }
        return String(text.reversed())
    }
}
