import ArgumentParser
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
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        Self.printJSON((try? encoder.encode(values)).map { Array($0) } ?? Array("{}".utf8))
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
enum OutputValue: Encodable, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral {
    case text(String)
    case number(Int64)
    case flag(Bool)
    case list([OutputValue])
    case object([String: OutputValue])

    init(stringLiteral value: String) { self = .text(value) }
    init(integerLiteral value: Int64) { self = .number(value) }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .text(let text): try container.encode(text)
        case .number(let number): try container.encode(number)
        case .flag(let flag): try container.encode(flag)
        case .list(let values): try container.encode(values)
        case .object(let values): try container.encode(values)
        }
    }
}
