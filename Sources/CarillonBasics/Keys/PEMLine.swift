/// The text before a position on its line. This text shows whether a block is real, commented out, or only named in other text.
struct PEMLine {
    /// Whether the line has contained anything but white space and quotes so far.
    private(set) var hasText: Bool
    /// Whether the text of the line starts with `#`, `;` or `//`.
    private(set) var isComment = false

    init(hasText: Bool = false) { self.hasText = hasText }

    /// Whether a character separates words: white space, a byte-order mark or a zero-width space.
    static func isBlank(_ scalar: Unicode.Scalar) -> Bool {
        scalar.properties.isWhitespace || scalar == "\u{FEFF}" || scalar == "\u{200B}"
    }

    /// Advances past a text. The text can contain line breaks, also written as `\n` and `\r`.
    mutating func pass(_ scalars: ArraySlice<Unicode.Scalar>) {
        var isEscaped = false
        for place in scalars.indices {
            let scalar = scalars[place]
            defer { isEscaped = scalar == "\\" }
            switch scalar {
            case "\n", "\r": self = PEMLine()
            case "n", "r": if isEscaped { self = PEMLine() } else { hasText = true }
            case "t": if !isEscaped { hasText = true }
            case "\\", "\"", "'": break
            case "#", ";": start(isComment: true)
            case "/": start(isComment: place + 1 < scalars.endIndex && scalars[place + 1] == "/")
            default: if !Self.isBlank(scalar) { hasText = true }
            }
        }
    }

    /// Records a character that can start a comment.
    private mutating func start(isComment: Bool) {
        if !hasText { self.isComment = isComment }
        hasText = true
    }
}
