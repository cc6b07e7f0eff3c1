import CarillonBasics
import Foundation

/// A payload that is sent as it is.
enum PayloadFile {
    static func read(_ path: String) throws -> Data {
        let data = try InputFile.bytes(path)
        guard case .object? = JSONValue(parsing: Array(data)) else {
            throw CommandFault(
                ExitStatus.refused,
                "\(path == "-" ? "standard input" : path) is not a payload, which is a JSON object like {\"aps\":{\"alert\":\"Hello\"}}"
            )
        }
        return data
    }
}
