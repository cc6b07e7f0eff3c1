import Foundation

/// Writes to standard error. All text goes through `escapedForTerminal`.
enum StandardError {
    /// Writes one line.
    static func print(_ line: String) { write(line.escapedForTerminal() + "\n") }

    /// Writes a line over the one that was drawn before, without ending it.
    static func draw(_ line: String) { write("\r\(line.escapedForTerminal())\u{1B}[K") }

    /// Leaves an empty line where a line was drawn.
    static func clearLine() { write("\r\u{1B}[K") }

    private static func write(_ text: String) {
        // When nobody reads it there is nobody to tell.
        try? FileHandle.standardError.write(contentsOf: Data(text.utf8))
    }
}
