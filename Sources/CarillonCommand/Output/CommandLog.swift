import Foundation
import Logging

/// The log of a command: lines on standard error, in which each event is one line whatever its values contain.
enum CommandLog {
    /// Makes all loggers of the process write such lines. It is called once.
    static func bootstrap() { LoggingSystem.bootstrap(handler) }

    static func handler(_ label: String) -> any LogHandler { StreamLogHandler(label: label, stream: Lines()) }

    /// The line of an event, with its end.
    static func line(_ text: String) -> String {
        // "\r\n" is one character, but two scalars.
        let scalars = text.unicodeScalars
        return String(scalars.last == "\n" ? scalars.dropLast() : scalars[...]).escapedForTerminal() + "\n"
    }

    /// Gets each event as one text that ends with a line feed.
    private struct Lines: TextOutputStream, Sendable {
        mutating func write(_ text: String) {
            try? FileHandle.standardError.write(contentsOf: Data(CommandLog.line(text).utf8))
        }
    }
}
