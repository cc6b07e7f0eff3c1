import CarillonAPNs

/// A device token, with its place in the file that it came from.
struct TokenLine: APNsRecipient, Hashable {
    let deviceToken: String
    /// The number of its line; nil when it came from the command line.
    var line: Int?
    /// How much of the file it is, with the lines passed over before it.
    var bytes = 0
}

/// Takes a file apart as its bytes come: one device token a line, blank lines and comments passed over.
struct TokenLines {
    /// Far above any token. Of a longer line the beginning is kept, to be named when it fails.
    static let longestLine = 8192

    private var partial: [UInt8] = []
    /// How much of the line was not kept.
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

    /// The last line, when the file does not end with a line's end.
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
