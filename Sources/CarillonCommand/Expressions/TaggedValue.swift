import CarillonBasics
import CarillonExpression
import Foundation

/// Values as JSON with their types: `{"int": "4"}`, `{"list": [{"string": "a"}]}`,
/// `{"map": [[{"string": "k"}, {"null": null}]]}`.
enum TaggedValue {
    struct Fault: Error {
        let sentence: String
        let code: String

        init(_ sentence: String, code: String = "line") { (self.sentence, self.code) = (sentence, code) }
    }

    /// The largest answer, in bytes.
    static let longest = 16 << 20

    static func read(_ json: JSONValue) throws(Fault) -> ExpressionValue {
        guard case .object(let members) = json, members.count == 1, let member = members.first else {
            throw Fault("a value must be an object with one member, such as {\"int\": \"4\"}")
        }
        if let value = try scalar(member.name, member.value) { return value }
        switch (member.name, member.value) {
        case ("null", .null): return .null
        case ("list", .array(let elements)):
            var values: [ExpressionValue] = []
            for element in elements { values.append(try read(element)) }
            return .list(values)
        case ("map", .array(let entries)):
            var map = ExpressionMap()
            for entry in entries {
                guard case .array(let pair) = entry, pair.count == 2 else {
                    throw Fault("an entry of a map must be a list of two values")
                }
                let key = try read(pair[0])
                guard map.insert(try read(pair[1]), for: key) else {
                    throw Fault("a key of a map must be a bool, int, uint or string, and must not appear twice")
                }
            }
            return .map(map)
        default: throw Fault("{\"\(member.name.prefix(40))\": …} is not a value")
        }
    }

    private static func scalar(_ tag: String, _ json: JSONValue) throws(Fault) -> ExpressionValue? {
        switch (tag, json) {
        case ("bool", .bool(let value)): return .bool(value)
        case ("int", .string(let text)): if let number = Int64(text) { return .int(number) }
        case ("uint", .string(let text)): if !text.hasPrefix("-"), let number = UInt64(text) { return .uint(number) }
        case ("double", .number(let number)): return .double(number)
        case ("double", .integer(let number)): return .double(Double(number))
        case ("double", .string("-0.0")): return .double(-0.0)
        case ("double", .string("NaN")): return .double(.nan)
        case ("double", .string("Infinity")): return .double(.infinity)
        case ("double", .string("-Infinity")): return .double(-.infinity)
        case ("string", .string(let text)): return .string(text)
        case ("bytes", .string(let text)): if let bytes = Data(base64Encoded: text) { return .bytes(Array(bytes)) }
        case ("timestamp", .string(let text)):
            if let instant = ExpressionTimestamp(text) { return .timestamp(instant) }
        case ("duration", .string(let text)): if let span = ExpressionDuration(text) { return .duration(span) }
        // The type of a value is always known, so `dynamic` is not valid.
        case ("type", .string(let name)): if let type = ExpressionType(name), type != .dynamic { return .type(type) }
        default: return nil
        }
        throw Fault("the value of \"\(tag)\" cannot be read")
    }

    /// Whether a variable of a type can have a value. An instant or a duration can be missing.
    static func fits(_ value: ExpressionValue, _ type: ExpressionType) -> Bool {
        switch (type, value) {
        case (.dynamic, _), (.free, _), (.timestamp, .null), (.duration, .null): true
        case (.list(let element), .list(let elements)): elements.allSatisfy { fits($0, element) }
        case (.map(let key, let element), .map(let map)):
            map.entries.allSatisfy { fits($0.key, key) && fits($0.value, element) }
        case (.list, _), (.map, _): false
        case (.type, .type): true
        default: value.type == type
        }
    }

    /// Writes negative zero as text, because a JSON number does not keep the sign of zero.
    static func write(_ value: ExpressionValue, to writer: inout JSONWriter) {
        // A value can contain another one many times. Writing stops when the answer is too long.
        guard writer.bytes.count <= longest else { return }
        writer.object { writer in
            switch value {
            case .null: writer.member("null", text: Array("null".utf8))
            case .bool(let value): writer.member("bool", value)
            case .int(let number): writer.member("int", String(number))
            case .uint(let number): writer.member("uint", String(number))
            case .double(let number) where number == 0 && number.sign == .minus: writer.member("double", "-0.0")
            case .double(let number) where number.isFinite:
                writer.key("double")
                writer.text(Array(number.description.utf8))
            case .double(let number): writer.member("double", number.isNaN ? "NaN" : number < 0 ? "-Infinity" : "Infinity")
            case .string(let text): writer.member("string", text)
            case .bytes(let bytes): writer.member("bytes", Data(bytes).base64EncodedString())
            case .list(let elements):
                writer.key("list")
                list(elements, to: &writer) { write($1, to: &$0) }
            case .map(let map):
                writer.key("map")
                list(map.entries, to: &writer) { writer, entry in
                    list([entry.key, entry.value], to: &writer) { write($1, to: &$0) }
                }
            case .timestamp(let instant): writer.member("timestamp", instant.description)
            case .duration(let span): writer.member("duration", span.description)
            case .type(let type): writer.member("type", type.name)
            }
        }
    }

    private static func list<Element>(
        _ elements: [Element], to writer: inout JSONWriter, _ write: (inout JSONWriter, Element) -> Void
    ) {
        writer.text([UInt8(ascii: "[")])
        for (index, element) in elements.enumerated() {
            if index > 0 { writer.text([UInt8(ascii: ",")]) }
            write(&writer, element)
        }
        writer.text([UInt8(ascii: "]")])
    }
}
