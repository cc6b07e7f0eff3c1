import CarillonBasics

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// A parameter of a service, or its result: a simple value, an array of simple values, or an object whose members are simple
/// values or such arrays. A value with more levels is ``ServiceError/Code/serviceParametersInvalid``.
public enum ServiceValue: Hashable, Sendable {
    case null
    case bool(Bool)
    case integer(Int64)
    /// A finite number.
    case number(Double)
    case string(String)
    case bytes(Data)
    case array([ServiceValue])
    case object([String: ServiceValue])
}

extension ServiceValue: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByFloatLiteral, ExpressibleByStringLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    /// Makes null.
    public init(nilLiteral: ()) { self = .null }
    /// Makes true or false.
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    /// Makes a whole number.
    public init(integerLiteral value: Int64) { self = .integer(value) }
    /// Makes a number.
    public init(floatLiteral value: Double) { self = .number(value) }
    /// Makes a text.
    public init(stringLiteral value: String) { self = .string(value) }
    /// Makes an array.
    public init(arrayLiteral elements: ServiceValue...) { self = .array(elements) }
    /// Makes an object. If two members have the same name, the last one counts.
    public init(dictionaryLiteral elements: (String, ServiceValue)...) {
        self = .object(Dictionary(elements, uniquingKeysWith: { $1 }))
    }
}

extension ServiceValue {
    private var isSimple: Bool {
        switch self {
        case .null, .bool, .integer, .string, .bytes: true
        case .number(let number): number.isFinite
        case .array, .object: false
        }
    }

    private var isSimpleOrArray: Bool {
        if case .array(let elements) = self { elements.allSatisfy(\.isSimple) } else { isSimple }
    }

    /// Whether the value has no more levels than a service's value can have, and its numbers are finite.
    public var isValid: Bool {
        if case .object(let members) = self { members.values.allSatisfy(\.isSimpleOrArray) } else { isSimpleOrArray }
    }

    /// The form in which the value is sent. A `number`, bytes and an object are each in an object with one member.
    var json: JSONValue {
        switch self {
        case .null: .null
        case .bool(let value): .bool(value)
        case .integer(let value): .integer(Int(value))
        case .number(let value): .object([.init(name: "number", value: .string(String(value)))])
        case .string(let value): .string(value)
        case .bytes(let value): .object([.init(name: "bytes", value: .string(Base64URL.encode(Array(value))))])
        case .array(let elements): .array(elements.map(\.json))
        case .object(let members):
            .object([
                .init(
                    name: "object",
                    value: .object(members.sorted { $0.key < $1.key }.map { .init(name: $0.key, value: $0.value.json) }))
            ])
        }
    }

    /// Returns nil if the JSON value does not represent a value of a service.
    init?(json: JSONValue) {
        guard let value = Self.read(json), value.isValid else { return nil }
        self = value
    }

    private static func read(_ json: JSONValue) -> ServiceValue? {
        switch json {
        case .null: return .null
        case .bool(let value): return .bool(value)
        case .integer(let value): return .integer(Int64(value))
        case .number: return nil
        case .string(let value): return .string(value)
        case .array(let elements):
            let values = elements.compactMap(read)
            return values.count == elements.count ? .array(values) : nil
        case .object(let members):
            guard members.count == 1, let member = members.first else { return nil }
            switch (member.name, member.value) {
            case ("number", .string(let text)): return Double(text).map { .number($0) }
            case ("bytes", .string(let text)): return Base64URL.decodeLeniently(text).map { .bytes(Data($0)) }
            case ("object", .object(let members)):
                var values: [String: ServiceValue] = [:]
                for member in members {
                    guard let value = read(member.value), values.updateValue(value, forKey: member.name) == nil else {
                        return nil
                    }
                }
                return .object(values)
            default: return nil
            }
        }
    }
}

// MARK: Types of the app

extension ServiceValue {
    /// Makes a value from a type of the app. `Data` becomes bytes.
    ///
    /// - Throws: ``ServiceError`` with ``ServiceError/Code/serviceParametersInvalid`` if the value has too many levels, or cannot
    ///   be encoded.
    public init(encoding value: some Encodable) throws {
        let encoder = JSONEncoder()
        encoder.dataEncodingStrategy = .custom { data, encoder in
            var container = encoder.singleValueContainer()
            try container.encode([Self.bytesMark: Base64URL.encode(Array(data))])
        }
        do {
            // The array around the value allows a type that is one simple value.
            let text = try encoder.encode([value])
            guard case .array(let elements)? = JSONValue(parsing: Array(text)), let element = elements.first,
                let value = Self.plain(element), value.isValid
            else {
                throw ServiceError(
                    .serviceParametersInvalid, "A value of a service is simple, or an array or object of such.")
            }
            self = value
        } catch let error as ServiceError {
            throw error
        } catch {
            throw ServiceError(.serviceParametersInvalid, "The value cannot be encoded: \(CodingFault.clause(of: error)).")
        }
    }

    /// Decodes the value as a type of the app.
    ///
    /// - Throws: ``ServiceError`` with ``ServiceError/Code/serviceParametersInvalid`` if the value does not have that type.
    public func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        let decoder = JSONDecoder()
        decoder.dataDecodingStrategy = .custom { decoder in
            let text = try decoder.singleValueContainer().decode([String: String].self)[Self.bytesMark]
            guard let bytes = text.flatMap(Base64URL.decodeLeniently) else {
                throw DecodingError.dataCorrupted(.init(codingPath: decoder.codingPath, debugDescription: "no bytes"))
            }
            return Data(bytes)
        }
        do {
            let values = try decoder.decode([Value].self, from: Data(JSONValue.array([plainJSON]).bytes))
            guard let value = values.first else { throw ServiceError(.serviceParametersInvalid, "There is no value.") }
            return value
        } catch let error as ServiceError {
            throw error
        } catch {
            throw ServiceError(.serviceParametersInvalid, "The value is no \(Value.self): \(CodingFault.clause(of: error)).")
        }
    }

    private static let bytesMark = "\u{1}bytes"

    private static func plain(_ json: JSONValue) -> ServiceValue? {
        switch json {
        case .null: return .null
        case .bool(let value): return .bool(value)
        case .integer(let value): return .integer(Int64(value))
        case .number(let value): return .number(value)
        case .string(let value): return .string(value)
        case .array(let elements):
            let values = elements.compactMap(plain)
            return values.count == elements.count ? .array(values) : nil
        case .object(let members):
            if members.count == 1, members[0].name == bytesMark, case .string(let text) = members[0].value {
                return Base64URL.decodeLeniently(text).map { .bytes(Data($0)) }
            }
            var values: [String: ServiceValue] = [:]
            for member in members {
                guard let value = plain(member.value) else { return nil }
                values[member.name] = value
            }
            return .object(values)
        }
    }

    private var plainJSON: JSONValue {
        switch self {
        case .null: .null
        case .bool(let value): .bool(value)
        case .integer(let value): .integer(Int(value))
        case .number(let value): .number(value)
        case .string(let value): .string(value)
        case .bytes(let value):
            .object([.init(name: Self.bytesMark, value: .string(Base64URL.encode(Array(value))))])
        case .array(let elements): .array(elements.map(\.plainJSON))
        case .object(let members):
            .object(members.sorted { $0.key < $1.key }.map { .init(name: $0.key, value: $0.value.plainJSON) })
        }
    }
}
