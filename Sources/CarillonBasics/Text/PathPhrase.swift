/// The path of a file in a message. A person can give a key in the place of its file, and a message never has a part of a key.
package enum PathPhrase {
    /// The longest name of a file on the usual file systems.
    private static let longestShown = 255
    /// The number of characters from which base64 and hexadecimal digits can be a key.
    private static let shortestKey = 40
    private static let longestComponent = 31

    /// Whether a text can be repeated in a message as the path of a file.
    package static func isShown(_ path: String) -> Bool {
        guard path.utf8.count <= longestShown, !path.contains("-----"), !path.contains("\\n"), !path.contains("\\r"),
            !path.contains(where: \.isNewline)
        else { return false }
        return !path.split(whereSeparator: \.isWhitespace).contains { isLikeKey($0) }
    }

    /// Returns the subject of a sentence about a file that cannot be opened.
    ///
    /// - Parameter kind: What precedes the path, such as "the file ".
    package static func subject(_ path: String, _ kind: String = "") -> String {
        isShown(path) ? "\(kind)\(path)" : "the given text, which is not a path,"
    }

    /// Whether a word is long and has the characters of base64, base64url or hexadecimal digits alone. In an absolute path,
    /// a single name must be long as well.
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
