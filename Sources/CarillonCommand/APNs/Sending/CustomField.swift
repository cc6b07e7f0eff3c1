import ArgumentParser
import CarillonBasics
import Foundation

/// A custom field of the payload, written as `KEY=JSON`.
struct CustomField: Equatable {
    let key: String
    let json: String

    init(_ text: String) throws {
        guard let sign = text.firstIndex(of: "="), sign != text.startIndex else {
            throw CommandFault(.validationFailure, "--custom must be KEY=JSON, such as kettle=7, not \"\(text)\"")
        }
        key = String(text[..<sign])
        json = String(text[text.index(after: sign)...])
        guard key != "aps" else {
            throw CommandFault(
                .validationFailure,
                "the key \"aps\" belongs to Apple; to set it, write the complete payload with --payload FILE")
        }
        guard JSONValue(parsing: Array(json.utf8)) != nil else {
            if let fault = CommandFault.numberOutOfRange(in: json.utf8, of: "--custom \(key)") { throw fault }
            throw CommandFault(
                .validationFailure,
                "the value of --custom \(key) is not JSON; put a text in quotation marks: '\(key)=\"\(json)\"'")
        }
    }
}
