import Foundation
import Logging

/// The log of a command on standard error. Each event is one line, independent of its values.
enum CommandLog {
    /// Sets this log for all loggers of the process. Must be called once.
    static func bootstrap() { LoggingSystem.bootstrap(handler) }

    static func handler(_ label: String) -> any LogHandler { StreamLogHandler(label: label, stream: Lines()) }

    /// Returns the line of an event, with its line break.
    static func line(_ text: String) -> String {
        // "\r\n" is one character, but two scalars.
        let scalars = text.unicodeScalars
        return String(scalars.last == "\n" ? scalars.dropLast() : scalars[...]).escapedForTerminal() + "\n"
    }

    /// Receives each event as one text that ends with a line feed.
    private struct Lines: TextOutputStream, Sendable {
        mutating func write(_ text: String) {
            try? FileHandle.standardError.write(contentsOf: Data(CommandLog.line(text).utf8))
        }
    }
}
