import Foundation

/// A response of the page or the JSON API.
struct ControlAnswer {
    var status: Int
    var type: String
    var body: String

    static let done = ControlAnswer(status: 204, type: "application/json", body: "")

    static func json(_ document: some Encodable, status: Int = 200) -> ControlAnswer {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes, .prettyPrinted]
        guard let data = try? encoder.encode(document) else { return refusal(500, "The answer cannot be written as JSON.") }
        return ControlAnswer(status: status, type: "application/json", body: String(decoding: data, as: UTF8.self) + "\n")
    }

    static func refusal(_ status: Int, _ sentence: String) -> ControlAnswer { json(["error": sentence], status: status) }

    static func text(_ body: String, type: String = "text/plain; charset=utf-8") -> ControlAnswer {
        ControlAnswer(status: 200, type: type, body: body)
    }
}

/// Why a request to the JSON API is rejected.
struct ControlRefusal: Error {
    var status: Int
    var sentence: String

    init(_ status: Int, _ sentence: String) {
        self.status = status
        self.sentence = sentence
    }
}
