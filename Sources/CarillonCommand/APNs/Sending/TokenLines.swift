import CarillonAPNs

/// A push token, with its place in the file.
struct TokenLine: APNsRecipient, Hashable {
    let deviceToken: String
    /// The number of its line; nil if it is from the command line.
    var line: Int?
    /// The bytes of its line, and of the skipped lines before it.
    var bytes = 0
}

/// Splits the bytes of a file into lines, each with one push token. Blank lines and comments are skipped.
struct TokenLines {
    /// The longest line that is kept, which is far above any token. The beginning of a longer line is kept for the message about
    /// it.
    static let longestLine = 8192

    private var partial: [UInt8] = []
    /// The number of bytes of the line that were not kept.
    private var dropped = 0
    private var line = 0
    private var passed = 0

    mutating func take(_ bytes: some Collection<UInt8>) -> [TokenLine] {
        var lines: [TokenLine] = []
        var rest = bytes[...]
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
            keep(rest[..<end])
            rest = rest[rest.index(after: end)...]
            if let line = finish(1) { lines.append(line) }
        }
        keep(rest)
        return lines
    }

    private mutating func keep(_ bytes: some Collection<UInt8>) {
        let kept = bytes.prefix(Self.longestLine - partial.count)
        partial.append(contentsOf: kept)
        dropped += bytes.count - kept.count
    }

    /// Returns the last line, if the file does not end with a line break.
    mutating func end() -> TokenLine? { partial.isEmpty ? nil : finish(0) }

    private mutating func finish(_ ending: Int) -> TokenLine? {
        line += 1
        passed += partial.count + dropped + ending
        defer {
            partial.removeAll(keepingCapacity: true)
            dropped = 0
        }
        var text = partial[...]
        if line == 1, text.starts(with: [0xEF, 0xBB, 0xBF]) { text = text.dropFirst(3) }
        let isSpace: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }
        text = text.drop(while: isSpace)
        while let last = text.last, isSpace(last) { text = text.dropLast() }
        guard let first = text.first, first != UInt8(ascii: "#") else { return nil }
        defer { passed = 0 }
        let token = String(decoding: dropped > 0 ? text.prefix(64) : text, as: UTF8.self)
        return TokenLine(deviceToken: dropped > 0 ? token + "…" : token, line: line, bytes: passed)
    }
}
