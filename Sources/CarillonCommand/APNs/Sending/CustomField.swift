import ArgumentParser
import Foundation

/// A key of the app's own, as `KEY=JSON`.
struct CustomField: Equatable {
    let key: String
    let json: String

    init(_ text: String) throws {
        guard let sign = text.firstIndex(of: "="), sign != text.startIndex else {
            throw CommandFault(.validationFailure, "--custom is KEY=JSON, such as kettle=7, not \"\(text)\"")
        }
        key = String(text[..<sign])
        json = String(text[text.index(after: sign)...])
        guard key != "aps" else {
            throw CommandFault(.validationFailure, "the key \"aps\" is Apple's own; write it whole with --payload FILE")
        }
        guard JSONValue.isJSON(Data(json.utf8)) else {
            throw CommandFault(
                .validationFailure,
                "the value of --custom \(key) is not JSON; a text has quotation marks: '\(key)=\"\(json)\"'")
        }
    }
}
