import ArgumentParser
import CarillonBasics
import Foundation
import Synchronization

/// Writes a command's output: lines of text, or one JSON object for each line.
struct Printer: Sendable {
    let isJSON: Bool

    /// Prints the values as one JSON object, or the sentence as one line.
    func print(_ values: [String: OutputValue], otherwise sentence: @autoclosure () -> String) {
        print(values, lines: [sentence()])
    }

    /// Prints the values as one JSON object, or the words as one line. Values and words that are nil are left out.
    func print(_ values: [String: OutputValue?], words: [String?]) {
        print(values.compactMapValues(\.self), lines: [words.compactMap(\.self).joined(separator: "  ")])
    }

    /// Prints the values as one JSON object, or the lines.
    func print(_ values: [String: OutputValue], lines: @autoclosure () -> [String]) {
        guard isJSON else { return lines().forEach(Self.printLine) }
        Self.printJSON(OutputValue.object(values).json.bytes)
    }

    /// Prints a text as one line.
    static func printLine(_ line: String) { write(line.escapedForTerminal()) }

    /// Prints a JSON text. Unsafe characters become escapes, so that the meaning of the JSON does not change.
    static func printJSON(_ text: [UInt8]) {
        write(String(decoding: text, as: UTF8.self).escapedForTerminal(keepsLines: true))
    }

    private static func write(_ text: String) {
        do {
            errno = 0
            try FileHandle.standardOutput.write(contentsOf: Data((text + "\n").utf8))
        } catch {
            if errno != EPIPE {
                StandardError.print(
                    "carillon: cannot write the output; stopping: \(FaultSentence.of(error))")
                exit(ExitStatus.output.rawValue)
            }
            // The reader has closed the pipe, as `head` does. Programs then end without a message.
            signal(SIGPIPE, SIG_DFL)
            raise(SIGPIPE)
            exit(EXIT_FAILURE)
        }
    }
}

/// A value of the JSON output.
enum OutputValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral {
    case text(String)
    case number(Int64)
    case flag(Bool)
    case list([OutputValue])
    case object([String: OutputValue])

    init(stringLiteral value: String) { self = .text(value) }
    init(integerLiteral value: Int64) { self = .number(value) }

    /// The value as JSON. The members of an object are sorted by their names.
    var json: JSONValue {
        switch self {
        case .text(let text): .string(text)
        case .number(let number): .integer(Int(number))
        case .flag(let flag): .bool(flag)
        case .list(let values): .array(values.map(\.json))
        case .object(let values):
            .object(values.sorted { $0.key < $1.key }.map { JSONValue.Member(name: $0.key, value: $0.value.json) })
        }
    }
}
