import Foundation

/// Writes to standard error. All text goes through `escapedForTerminal`.
enum StandardError {
    /// Writes one line.
    static func print(_ line: String) { write(line.escapedForTerminal() + "\n") }

    /// Writes a line in place of the last drawn line, without a line break.
    static func draw(_ line: String) { write("\r\(line.escapedForTerminal())\u{1B}[K") }

    /// Erases the drawn line.
    static func clearLine() { write("\r\u{1B}[K") }

    private static func write(_ text: String) {
        // If standard error cannot be written, there is no other place to report it.
        try? FileHandle.standardError.write(contentsOf: Data(text.utf8))
    }
}
