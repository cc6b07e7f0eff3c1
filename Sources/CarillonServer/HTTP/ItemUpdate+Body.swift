import CarillonBasics
import CarillonCore
import CarillonExpression
import CarillonWire

/// An item update in the form that its publisher writes.
struct WrittenUpdate: Sendable {
    var item: ItemName?
    var fields: [WrittenField]
    var place: ItemUpdate.Place?

    /// - Parameter text: One JSON object. Numbers keep their written digits.
    init(_ text: [UInt8], namesItem: Bool) throws(Refusal) {
        guard let members = JSONPlaces.members(in: text[...]) else {
            throw Refusal.numberOutOfRange(in: text) ?? Refusal(.jsonInvalid, "An update must be one JSON object in UTF-8.")
        }
        fields = []
        var seen: Set<String> = []
        var source: String?
        var sequence: Int64?
        for member in members {
            guard seen.insert(member.name).inserted else {
                throw Refusal(.jsonInvalid, "The field \"\(member.name.prefix(60))\" is there twice.")
            }
            switch (member.name, JSONValue(parsing: Array(member.value))) {
            case ("item", .string(let name)) where namesItem: item = try ItemName.checked(name)
            case ("fields", .object): fields = try Self.fields(member.value)
            case ("source", .string(let name)) where (1...ItemLimits.sourceBytes).contains(name.utf8.count): source = name
            case ("sequence", .integer(let number)): sequence = Int64(number)
            case ("item", _), ("fields", _), ("source", _), ("sequence", _):
                throw Refusal(
                    .fieldInvalid,
                    "The field \"\(member.name)\" must be \(member.name == "fields" ? "an object" : member.name == "sequence" ? "a whole number" : "a text of at most \(ItemLimits.sourceBytes) bytes")."
                )
            default:
                throw Refusal(
                    .fieldUnknown,
                    "The field \"\(member.name.prefix(60))\" is unknown; known are: fields, item, sequence, source.")
            }
        }
        guard seen.contains("fields") else { throw Refusal(.fieldMissing, "The field \"fields\" is missing.") }
        guard item != nil || !namesItem else { throw Refusal(.fieldMissing, "The field \"item\" is missing.") }
        switch (source, sequence) {
        case (let source?, let sequence?): place = .init(source: source, sequence: sequence)
        case (nil, nil): break
        default: throw Refusal(.fieldMissing, "\"source\" and \"sequence\" go together.")
        }
    }

    private static func fields(_ text: ArraySlice<UInt8>) throws(Refusal) -> [WrittenField] {
        var fields: [WrittenField] = []
        for member in JSONPlaces.members(in: text) ?? [] {
            let value: WrittenField.Value
            switch JSONValue(parsing: Array(member.value)) {
            case .null: value = .null
            case .bool(let flag): value = .bool(flag)
            case .string(let text): value = .string(text)
            case .integer, .number: value = .number(String(decoding: member.value, as: UTF8.self))
            default:
                throw Refusal(
                    .fieldInvalid, "The field \"\(member.name.prefix(60))\" must be null, a bool, a number or a text.")
            }
            fields.append(WrittenField(member.name, value))
        }
        return fields
    }
}

extension StoredItem {
    /// Returns the item as JSON. Numbers keep the digits that publishers wrote.
    func json(_ name: ItemName) -> [UInt8] {
        JSONWriter.object { json in
            json.member("item", name.text)
            json.member("mode", state.mode.rawValue)
            json.member("fields") { Self.write(state.fields, to: &$0) }
            if let previous = state.previous { json.member("previous") { Self.write(previous, to: &$0) } }
            json.member("updatedAt", state.updatedAt.map { Timestamp3339.text($0.milliseconds) })
            json.member("version", version)
        }
    }

    private static func write(_ fields: [String: ItemValue], to json: inout JSONWriter) {
        for (name, field) in fields.sorted(by: { $0.key < $1.key }) {
            json.key(untrusted: name)
            if let digits = field.digits {
                json.text(Array(digits.utf8))
                continue
            }
            switch field.value {
            case .null: json.value(.null)
            case .bool(let value): json.value(.bool(value))
            default: json.string(field.text)
            }
        }
    }
}
