import ArgumentParser
import CarillonCore
import CarillonServer

/// One setting of `serve`.
///
/// ``all`` is the only table of the settings. The parser, `--help`, the messages about invalid values and the table in
/// docs/command-line.md are derived from it.
struct ServeSetting: Sendable {
    /// The name in the file and on the command line. The environment variable is the name in capitals with the prefix
    /// `CARILLON_`.
    let name: String
    /// The valid values, as a text that follows "must be".
    let values: String
    /// The default, in Markdown; nil if the setting has no default.
    let standard: String?
    /// The meaning, in Markdown.
    let description: String
    /// Whether the command line has an option of this name.
    let isOption: Bool
    /// Whether the file can contain an array of texts, which is read as a text with commas between.
    let isList: Bool
    /// Writes a value to the settings. Returns false if the text is not one of ``values``. Throws a ``CallAddress/Fault`` if an
    /// address is not valid.
    let read: @Sendable (_ text: String, _ settings: inout ServerSettings) throws -> Bool

    init(
        _ name: String, _ values: String, standard: String? = nil, isOption: Bool = false, isList: Bool = false,
        _ description: String,
        read: @escaping @Sendable (_ text: String, _ settings: inout ServerSettings) throws -> Bool
    ) {
        self.name = name
        self.values = values
        self.standard = standard
        self.description = description
        self.isOption = isOption
        self.isList = isList
        self.read = read
    }

    static let all: [ServeSetting] = Array([options, connections, inboxes, rates, attachments, outward].joined())

    static let names = all.map(\.name)

    /// Writes the values of settings, by their names, in the order of the table.
    static func read(_ values: [String: String], into settings: inout ServerSettings) throws {
        for setting in all {
            guard let text = values[setting.name] else { continue }
            do {
                guard try setting.read(text, &settings) else { throw setting.fault(text) }
            } catch let fault as CallAddress.Fault {
                throw setting.fault(fault)
            }
        }
    }

    func fault(_ text: String) -> CommandFault {
        CommandFault(.validationFailure, "\"\(name)\" must be \(values), not \"\(text.prefix(200))\".")
    }

    /// The fault does not contain the value, because the value can contain a password.
    func fault(_ fault: CallAddress.Fault) -> CommandFault {
        CommandFault(.validationFailure, "\"\(name)\" must be \(values): it \(fault.reason).")
    }

    static subscript(_ name: String) -> ServeSetting {
        guard let setting = all.first(where: { $0.name == name }) else { preconditionFailure("no setting \(name)") }
        return setting
    }
}

extension ServeSetting {
    /// The help of the option of a setting.
    static func help(_ name: String) -> ArgumentHelp {
        let setting = Self[name]
        let standard = setting.standard.map { " (default: \(plain($0)))" } ?? ""
        return ArgumentHelp(plain(setting.description) + standard)
    }

    /// The lines of `--help` about the settings that are not options.
    static var helpLines: String {
        all.filter { !$0.isOption }.map { setting in
            let standard = setting.standard.map { "; default: \(plain($0))" } ?? ""
            return "  \(setting.name): \(plain(setting.description)) (\(setting.values)\(standard))"
        }.joined(separator: "\n")
    }

    /// Returns Markdown without its links and quotes.
    private static func plain(_ markdown: String) -> String {
        markdown.replacing(/\[([^\]]*)\]\([^)]*\)/) { $0.output.1 }.replacing("`", with: "")
    }
}

extension ServeSetting {
    /// Returns the valid name that is most similar to the text.
    static func nearest(to text: String) -> String {
        names.min { distance($0, text) < distance($1, text) } ?? ""
    }

    /// Returns the number of letters to insert, remove or replace (Levenshtein).
    private static func distance(_ one: String, _ other: String) -> Int {
        let other = Array(other)
        var row = Array(0...other.count)
        for (index, letter) in one.enumerated() {
            var diagonal = row[0]
            row[0] = index + 1
            for column in other.indices {
                let replaced = diagonal + (letter == other[column] ? 0 : 1)
                diagonal = row[column + 1]
                row[column + 1] = min(replaced, row[column] + 1, row[column + 1] + 1)
            }
        }
        return row[other.count]
    }
}
