import CarillonBasics
import CarillonWire

extension UpdateOutcome {
    /// Returns the form in which the outcome is reported to the server.
    func json(of key: UpdateKey, _ attempt: Int) -> String {
        var members: [JSONValue.Member] = [
            .init(name: "update", value: .string(key.update)), .init(name: "entry", value: .integer(key.entry)),
            .init(name: "attempt", value: .integer(attempt)),
        ]
        func add(_ name: String, _ value: JSONValue) { members.append(.init(name: name, value: value)) }
        func reason(_ text: String) { add("reason", .string(text.cut(toBytes: Limits.reasonBytes))) }
        switch self {
        case .done(let code):
            add("result", .string("done"))
            if let code { reason(code) }
        case .deferred(let condition, let text):
            add("result", .string("deferred"))
            add("until", .string(condition.rawValue))
            reason(text)
        case .failed(let isPermanent, let text):
            add("result", .string("failed"))
            if isPermanent { add("permanent", .bool(true)) }
            reason(text)
        case .unsupported: add("result", .string("unsupported"))
        }
        return String(decoding: JSONValue.object(members).bytes, as: UTF8.self)
    }
}
