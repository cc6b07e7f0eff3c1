import CarillonBasics
import Foundation

/// A payload that is sent unchanged.
enum PayloadFile {
    static func read(_ path: String) throws -> Data {
        let data = try InputFile.bytes(path)
        let bytes = Array(data)
        if case .object? = JSONValue(parsing: bytes) { return data }
        // The library knows which push types accept such payloads.
        guard JSONFlaw(inObject: bytes) != nil else {
            let name = path == "-" ? "standard input" : path
            if let fault = CommandFault.numberOutOfRange(in: data, of: name, ExitStatus.refused) { throw fault }
            throw CommandFault(
                ExitStatus.refused,
                "\(name) is not a payload; a payload must be a JSON object like {\"aps\":{\"alert\":\"Hello\"}}"
            )
        }
        return data
    }
}
