import CarillonBasics
import CarillonWire

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// The definition of a version of a service: its methods, with their parameters, results, files and errors. Providers and
/// consumers with the definition check requests and replies against it. The server never receives it.
///
/// A definition is a JSON document. Its schema is in docs/service-definition.schema.json, and `carillon services check` explains
/// faults.
public struct ServiceDefinition: Hashable, Sendable {
    /// The id of the service, a reversed domain name: `com.example.transfer-file`.
    public let service: String
    /// The version of the service: `1.0.0.0`.
    public let version: String
    /// A title for people.
    public let title: String
    /// A description for people.
    public let description: String
    /// The methods by name.
    public let methods: [String: Method]

    /// A method of a service.
    public struct Method: Hashable, Sendable {
        /// A description for people.
        public var description: String
        /// The shape of the parameters; null if the method has no parameters.
        public var parameters: ServiceShape
        /// The shape of the result; null if the method has no result.
        public var reply: ServiceShape
        /// The number of files that a request can have.
        public var attachments: ClosedRange<Int>
        /// The number of files that a reply can have.
        public var replyAttachments: ClosedRange<Int>
        /// The meanings of the error numbers of the method.
        public var errors: [Int: String]
    }

    /// The names of all methods, with the service and its version.
    public var allMethods: [ServiceMethod] {
        methods.keys.sorted().map { ServiceMethod(service, version, $0) }
    }

    /// Reads a definition from a JSON document.
    /// - Throws: ``ServiceDefinitionFaults`` with all faults of the document.
    public init(_ document: Data) throws(ServiceDefinitionFaults) {
        var reader = DefinitionReader()
        guard let json = JSONValue(parsing: Array(document)), case .object = json else {
            if let number = NumberOutOfRange(in: Array(document)) {
                let place = number.path.map(DefinitionReader.part).joined()
                throw ServiceDefinitionFaults([.init(place: place, text: "The number must be in the range of Double.")])
            }
            throw ServiceDefinitionFaults([.init(place: "", text: "The document must be one JSON object.")])
        }
        self = reader.definition(json)
        guard reader.faults.isEmpty else { throw ServiceDefinitionFaults(reader.faults) }
    }

    init(service: String, version: String, title: String, description: String, methods: [String: Method]) {
        self.service = service
        self.version = version
        self.title = title
        self.description = description
        self.methods = methods
    }
}

/// The faults of a definition, each with its position.
public struct ServiceDefinitionFaults: Error, Hashable, Sendable, CustomStringConvertible {
    /// A fault of a definition.
    public struct Fault: Hashable, Sendable {
        /// The position of the fault, as a JSON Pointer (RFC 6901): `/methods/open/parameters/members/url/type`.
        public var place: String
        /// A sentence with the fault and what is valid.
        public var text: String
    }

    /// The faults in the order of the document.
    public let faults: [Fault]

    init(_ faults: [Fault]) { self.faults = faults }

    /// One line for each fault.
    public var description: String {
        faults.map { "\($0.place.isEmpty ? "/" : $0.place): \($0.text)" }.joined(separator: "\n")
    }
}

/// The valid values of a parameter or a result.
public indirect enum ServiceShape: Hashable, Sendable {
    case null
    case bool
    case integer
    /// A number, also a whole one.
    case number
    case string
    case bytes
    /// An array of simple values.
    case array(ServiceShape)
    /// An object of simple values and arrays.
    case object([String: Member])
    /// Any value of a service.
    case any

    /// A member of an object.
    public struct Member: Hashable, Sendable {
        public var shape: ServiceShape
        /// Whether the member can be absent.
        public var isOptional: Bool
    }

    /// Returns why a value does not have this shape, with its position; nil if the value has the shape.
    func fault(of value: ServiceValue, at place: String = "") -> String? {
        func wrong(_ what: String) -> String { "\(place.isEmpty ? "The value" : place) must be \(what)." }
        switch (self, value) {
        case (.any, _): return value.isValid ? nil : wrong("simple, or an array or object of simple values")
        case (.null, .null), (.bool, .bool), (.integer, .integer), (.number, .number), (.number, .integer),
            (.string, .string),
            (.bytes, .bytes):
            return nil
        case (.array(let shape), .array(let elements)):
            for (index, element) in elements.enumerated() {
                if let fault = shape.fault(of: element, at: "\(place)/\(index)") { return fault }
            }
            return nil
        case (.object(let members), .object(let values)):
            for (name, member) in members.sorted(by: { $0.key < $1.key }) {
                guard let value = values[name] else {
                    if member.isOptional { continue }
                    return "\(place)/\(name) is missing."
                }
                if let fault = member.shape.fault(of: value, at: "\(place)/\(name)") { return fault }
            }
            return values.keys.sorted().first { members[$0] == nil }.map { "\(place)/\($0) is unknown." }
        case (.null, _): return wrong("null")
        case (.bool, _): return wrong("true or false")
        case (.integer, _): return wrong("a whole number")
        case (.number, _): return wrong("a number")
        case (.string, _): return wrong("a text")
        case (.bytes, _): return wrong("bytes")
        case (.array, _): return wrong("an array")
        case (.object, _): return wrong("an object")
        }
    }
}

extension ServiceDefinition {
    /// Checks a request.
    /// - Throws: ``ServiceError`` with ``ServiceError/Code/serviceMethodNotFound`` or
    ///   ``ServiceError/Code/serviceParametersInvalid``.
    func check(_ parameters: ServiceValue, attachments: Int, of method: String) throws(ServiceError) {
        guard let method = methods[method] else {
            throw ServiceError(.serviceMethodNotFound, "\(service) \(version) has no \(method).")
        }
        if let fault = method.parameters.fault(of: parameters) { throw ServiceError(.serviceParametersInvalid, fault) }
        try Self.check(attachments, in: method.attachments)
    }

    /// Checks a reply. A method that the definition does not have is not checked.
    func check(reply: ServiceValue, attachments: Int, of method: String) throws(ServiceError) {
        guard let method = methods[method] else { return }
        if let fault = method.reply.fault(of: reply) { throw ServiceError(.serviceParametersInvalid, fault) }
        try Self.check(attachments, in: method.replyAttachments)
    }

    private static func check(_ count: Int, in range: ClosedRange<Int>) throws(ServiceError) {
        guard range.contains(count) else {
            throw ServiceError(
                .serviceParametersInvalid,
                range.lowerBound == range.upperBound
                    ? "There must be \(range.lowerBound) files."
                    : "There must be \(range.lowerBound) to \(range.upperBound) files.")
        }
    }
}
