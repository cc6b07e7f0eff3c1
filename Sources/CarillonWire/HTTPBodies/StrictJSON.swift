package import CarillonBasics

#if canImport(FoundationEssentials)
    package import FoundationEssentials
#else
    package import Foundation
#endif

/// A body of the HTTP API. All names of its members are known, and its numbers are integers.
package protocol StrictBody: Decodable {
    static var memberNames: Set<String> { get }
}

/// Reads bodies of Carillon's API. Unknown members are rejected, so that a typing error is reported instead of ignored.
package enum StrictJSON {
    package static func decode<Body: StrictBody>(_ type: Body.Type, from data: Data) throws(Refusal) -> Body {
        // Foundation's parser accepts a comma before a closing bracket, which RFC 8259 does not allow.
        let text = Array(data)
        guard let value = JSONValue(parsing: text), case .object(let members) = value else {
            throw Refusal.numberOutOfRange(in: text) ?? notJSON
        }
        do {
            try refuseUnknown(Set(members.map(\.name)), known: type.memberNames)
            // The text is written from the parsed value, so that the same numbers are integers here and in a frame.
            return try JSONDecoder().decode(type, from: Data(value.withoutFractions.bytes))
        } catch let refusal as Refusal {
            throw refusal
        } catch DecodingError.keyNotFound(let key, let context) {
            throw Refusal(.fieldMissing, "The field \"\(path(context.codingPath + [key]))\" is missing.")
        } catch DecodingError.typeMismatch(let type, let context) where !context.codingPath.isEmpty {
            throw Refusal(.fieldInvalid, "The field \"\(path(context.codingPath))\" must be \(name(of: type)).")
        } catch DecodingError.valueNotFound(let type, let context) where !context.codingPath.isEmpty {
            throw Refusal(.fieldInvalid, "The field \"\(path(context.codingPath))\" must be \(name(of: type)), not null.")
        } catch DecodingError.dataCorrupted(let context) where !context.codingPath.isEmpty {
            throw Refusal(.fieldInvalid, "The field \"\(path(context.codingPath))\" is wrong: \(context.debugDescription)")
        } catch DecodingError.dataCorrupted(let context) {
            // For some numbers, the decoder reports no path.
            throw Refusal(.fieldInvalid, "A field is wrong: \(context.debugDescription)")
        } catch {
            throw notJSON
        }
    }

    /// Reads one object. All members must be known, and none can occur twice.
    package static func object(_ text: [UInt8], known: Set<String>) throws(Refusal) -> JSONValue {
        guard let value = JSONValue(parsing: text), case .object(let members) = value else {
            throw Refusal.numberOutOfRange(in: text) ?? notJSON
        }
        try refuseUnknown(value.names, known: known)
        guard value.names.count == members.count else { throw Refusal(.jsonInvalid, "A field is there twice.") }
        return value
    }

    private static let notJSON = Refusal(
        .jsonInvalid, "The body must be one JSON object in UTF-8, with no comma before a closing bracket.")

    /// Rejects unknown members of an object inside a body.
    static func refuseUnknownMembers(of decoder: any Decoder, known: Set<String>) throws {
        try refuseUnknown(try MemberNames(from: decoder).names, known: known)
    }

    private static func refuseUnknown(_ names: Set<String>, known: Set<String>) throws(Refusal) {
        guard let unknown = names.subtracting(known).min() else { return }
        throw Refusal(
            .fieldUnknown,
            "The field \"\(unknown.prefix(60))\" is unknown; known are: \(known.sorted().joined(separator: ", ")).")
    }

    private struct MemberNames: Decodable {
        var names: Set<String>
        init(from decoder: any Decoder) throws {
            names = Set(try decoder.container(keyedBy: AnyKey.self).allKeys.map(\.stringValue))
        }
    }

    private static func path(_ keys: [any CodingKey]) -> String {
        keys.map { $0.intValue.map(String.init) ?? $0.stringValue }.joined(separator: ".")
    }

    private static func name(of type: any Any.Type) -> String {
        switch type {
        case is String.Type: "a text"
        case is Int.Type, is Int64.Type: "a whole number"
        case is Bool.Type: "true or false"
        case is any Collection.Type: "an array"
        default: "of another type"
        }
    }
}

extension JSONValue {
    /// Returns the value with an empty object instead of each number that is not an integer, so that decoding fails. Foundation's
    /// decoder reads 301.00000000000000001 as an integer.
    fileprivate var withoutFractions: JSONValue {
        switch self {
        case .number: .object([])
        case .array(let values): .array(values.map(\.withoutFractions))
        case .object(let members):
            .object(members.map { Member(name: $0.name, value: $0.value.withoutFractions) })
        case .null, .bool, .integer, .string: self
        }
    }

    /// The names of an object's members.
    package var names: Set<String> {
        guard case .object(let members) = self else { return [] }
        return Set(members.map(\.name))
    }

    /// The text of a member; nil when it is absent or null.
    package func textMember(_ name: String) throws(Refusal) -> String? {
        switch self[name] {
        case nil, .null: return nil
        case .string(let text): return text
        default: throw Refusal(.fieldInvalid, "The field \"\(name)\" must be a text.")
        }
    }
}

/// A member name that is not known in advance.
private struct AnyKey: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }
    init?(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
}
