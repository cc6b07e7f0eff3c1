import CarillonBasics

/// Checks the key IDs and team IDs that Apple assigns.
enum AppleIdentifier {
    static let length = 10
    /// A longer text is not repeated in an error message, because it can be the key itself, passed as its ID.
    private static let longestShown = 40

    /// - Parameter name: The name of the identifier, such as "key ID".
    static func check(_ text: String, _ name: String) throws(APNsError) {
        let isShown = text.unicodeScalars.count <= longestShown
        let subject = isShown && !text.isEmpty ? "The \(name) \"\(printable(text))\"" : "The \(name)"
        let need = "it must be \(length) letters A to Z and digits"
        for (index, scalar) in text.unicodeScalars.enumerated() where !isValid(scalar) {
            throw APNsError(
                .credentialsInvalid,
                "\(subject) has the character \(KeyFault.phrase(scalar)) at position \(index + 1); \(need).")
        }
        let count = text.unicodeScalars.count
        guard count == length else {
            throw APNsError(
                .credentialsInvalid, "\(subject) has \(count) \(count == 1 ? "character" : "characters"); \(need).")
        }
    }

    private static func isValid(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case "A"..."Z", "a"..."z", "0"..."9": true
        default: false
        }
    }

    /// Replaces the characters that cannot be printed. The error message contains their numbers.
    private static func printable(_ text: String) -> String {
        var printed = String.UnicodeScalarView()
        printed.append(
            contentsOf: text.unicodeScalars.map { scalar -> Unicode.Scalar in
                scalar.properties.isGraphemeBase ? scalar : "\u{FFFD}"
            })
        return String(printed)
    }
}
