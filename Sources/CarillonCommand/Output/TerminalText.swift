extension String {
    /// Returns the text as a command writes it, on a terminal or elsewhere. Characters that could control a terminal, imitate a
    /// line or change the direction of text are written as JSON escapes. Valid JSON therefore stays the same JSON.
    ///
    /// The characters are controls, U+061C, U+200E, U+200F, U+2028 to U+202E and U+2066 to U+2069. Escaping an escaped text does
    /// not change it.
    ///
    /// - Parameter keepsLines: Whether line feeds are kept, as in JSON of several lines. Tabs and carriage returns, which valid
    ///   JSON has only between its tokens, then become spaces.
    func escapedForTerminal(keepsLines: Bool = false) -> String {
        guard unicodeScalars.contains(where: \.isUnsafeOnTerminal) else { return self }
        var text = ""
        for scalar in unicodeScalars {
            switch scalar {
            case "\n": text += keepsLines ? "\n" : #"\n"#
            case "\r": text += keepsLines ? " " : #"\r"#
            case "\t": text += keepsLines ? " " : #"\t"#
            case _ where scalar.isUnsafeOnTerminal:
                let digits = String(scalar.value, radix: 16)
                text += #"\u"# + String(repeating: "0", count: 4 - digits.count) + digits
            default: text.unicodeScalars.append(scalar)
            }
        }
        return text
    }

    func padding(to width: Int, atStart: Bool = false) -> String {
        let spaces = String(repeating: " ", count: max(0, width - count))
        return atStart ? spaces + self : self + spaces
    }
}

extension Unicode.Scalar {
    fileprivate var isUnsafeOnTerminal: Bool {
        switch value {
        case 0x00...0x1F, 0x7F...0x9F, 0x61C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069: true
        default: false
        }
    }
}

extension BinaryInteger {
    /// The number with commas between groups of three digits.
    var grouped: String {
        var text = ""
        for (index, digit) in String(self).reversed().enumerated() {
            if index > 0, index.isMultiple(of: 3), digit != "-" { text.append(",") }
            text.append(digit)
        }
        return String(text.reversed())
    }
}
