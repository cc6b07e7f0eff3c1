import ArgumentParser
import CarillonBasics
import Foundation

/// Reads the environment and the file of `serve` as names and texts. Unknown names are rejected.
enum ServeSources {
    /// Variables of other commands, which `serve` ignores.
    private static let others: Set<String> = [
        "CARILLON_CONFIG", "CARILLON_SERVER", "CARILLON_KEY", "CARILLON_CA", "CARILLON_APNS_PASSPHRASE",
    ]

    static func environment(_ variables: [String: String]) throws -> [String: String] {
        var values: [String: String] = [:]
        for (variable, value) in variables.sorted(by: { $0.key < $1.key }) where variable.hasPrefix("CARILLON_") {
            if others.contains(variable) || isOfOrchestrator(variable) { continue }
            let name = variable.dropFirst("CARILLON_".count).lowercased().replacing("_", with: "-")
            guard ServeSetting.names.contains(name), Self.variable(of: name) == variable else {
                throw CommandFault(
                    .validationFailure,
                    "the environment variable \(variable) is unknown; did you mean \(Self.variable(of: ServeSetting.nearest(to: name)))?"
                )
            }
            values[name] = value
        }
        return values
    }

    static func file(_ path: String) throws -> [String: String] {
        let values: [String: Value]
        do {
            let text = try Data(contentsOf: URL(fileURLWithPath: path))
            let name = "the file \(path)"
            if let fault = CommandFault.numberOutOfRange(in: text, of: name, ExitStatus.noInput) { throw fault }
            values = try JSONDecoder().decode([String: Value].self, from: text)
        } catch let fault as CommandFault {
            throw fault
        } catch let error as DecodingError {
            if case .typeMismatch(_, let context) = error, let name = context.codingPath.first?.stringValue {
                throw wrongKind(name, path)
            }
            throw CommandFault(ExitStatus.noInput, "the file \(path) cannot be read as a JSON object")
        } catch {
            throw CommandFault(ExitStatus.noInput, "\(PathPhrase.subject(path, "the file ")) cannot be read")
        }
        for name in values.keys.sorted() where !ServeSetting.names.contains(name) {
            throw CommandFault(
                .validationFailure,
                "the file \(path): \"\(name)\" is unknown; did you mean \"\(ServeSetting.nearest(to: name))\"?")
        }
        for name in values.keys.sorted() where values[name]?.isList == true && !ServeSetting[name].isList {
            throw wrongKind(name, path)
        }
        return values.mapValues(\.text)
    }

    private static func wrongKind(_ name: String, _ path: String) -> CommandFault {
        let isList = ServeSetting.all.contains { $0.name == name && $0.isList }
        let kinds = isList ? "a text or an array of texts" : "a text, a whole number, true or false"
        return CommandFault(ExitStatus.noInput, "the file \(path): \(name) must be \(kinds)")
    }

    private static func variable(of name: String) -> String {
        "CARILLON_" + name.uppercased().replacing("-", with: "_")
    }

    /// Whether a variable is one that Kubernetes and Docker set for a service named carillon.
    private static func isOfOrchestrator(_ variable: String) -> Bool {
        variable.wholeMatch(of: /CARILLON_(SERVICE_(HOST|PORT(_.+)?)|PORT(_[0-9]+_(TCP|UDP)(_(PROTO|PORT|ADDR))?)?|NAME)/)
            != nil
    }

    private struct Value: Decodable {
        let text: String
        let isList: Bool

        init(from decoder: any Decoder) throws {
            if var list = try? decoder.unkeyedContainer() {
                var texts: [String] = []
                while !list.isAtEnd { texts.append(try list.decode(String.self)) }
                text = texts.joined(separator: ",")
                isList = true
                return
            }
            isList = false
            let container = try decoder.singleValueContainer()
            if let flag = try? container.decode(Bool.self) {
                text = String(flag)
            } else if let number = try? container.decode(Int.self) {
                text = String(number)
            } else {
                text = try container.decode(String.self)
            }
        }
    }
}
