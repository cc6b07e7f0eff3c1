#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Writes file paths in messages. A caller can pass a key by mistake instead of a path, so a text that could be a key is not
/// repeated.
package enum PathPhrase {
    /// The longest file name on the usual file systems.
    private static let longestShown = 255
    /// The number of characters from which base64 or hexadecimal digits can be a key.
    private static let shortestKey = 40
    private static let longestComponent = 31

    /// Whether a text can be repeated in a message as a file path. A text that could be a key counts as a path if its directory
    /// exists.
    package static func isShown(_ path: String) -> Bool {
        guard !path.contains(where: \.isNewline) else { return false }
        return !canBeKey(path) || hasDirectory(path)
    }

    /// Returns the subject of a sentence about a file that cannot be opened.
    ///
    /// - Parameter kind: The text before the path, such as "the file ".
    package static func subject(_ path: String, _ kind: String = "") -> String {
        isShown(path) ? "\(kind)\(path)" : "the file (its path is not shown because it could be a key)"
    }

    private static func canBeKey(_ text: String) -> Bool {
        guard text.utf8.count <= longestShown, !text.contains("-----"), !text.contains("\\n"), !text.contains("\\r") else {
            return true
        }
        return text.split(whereSeparator: \.isWhitespace).contains { isLikeKey($0) }
    }

    /// Whether the text names a directory that exists. The root directory does not count, because base64 can start with a slash.
    private static func hasDirectory(_ text: String) -> Bool {
        guard let end = text.lastIndex(of: "/") else { return false }
        let directory = text[..<end]
        guard directory.contains(where: { $0 != "/" }) else { return false }
        return access("\(directory)/.", F_OK) == 0
    }

    /// Whether a word is long and consists only of base64, base64url or hexadecimal characters. In an absolute path, one of the
    /// names must be long as well.
    private static func isLikeKey(_ word: Substring) -> Bool {
        let characters = word.utf8
        guard characters.count >= shortestKey, characters.allSatisfy(isOfKey),
            characters.contains(where: { (0x30...0x39).contains($0) })
        else { return false }
        guard characters.first == UInt8(ascii: "/") else { return true }
        return characters.split(separator: UInt8(ascii: "/")).contains { $0.count > longestComponent }
    }

    private static func isOfKey(_ character: UInt8) -> Bool {
        switch character {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "/"), UInt8(ascii: "="),
            UInt8(ascii: "-"),
            UInt8(ascii: "_"):
            true
        default: false
        }
    }
}
