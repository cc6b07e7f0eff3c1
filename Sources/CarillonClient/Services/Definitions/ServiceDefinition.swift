import CarillonBasics
import CarillonWire

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// What a version of a service is: its methods, with the parameters, results, files and errors that each may have. Providers and consumers
/// that know it hold requests and replies against it; the server never sees it.
///
/// It is written as a JSON document, whose schema is in docs/service-definition.schema.json; `carillon services check` explains faults.
public struct ServiceDefinition: Hashable, Sendable {
    /// A domain in reverse: `com.example.transfer-file`.
    public let service: String
    /// `1.0.0.0`.
    public let version: String
    /// For people.
    public let title: String
    /// For people.
    public let description: String
    /// By name.
    public let methods: [String: Method]

    /// One method.
    public struct Method: Hashable, Sendable {
        /// For people.
        public var description: String
        /// Null, where none are wanted.
        public var parameters: ServiceShape
        /// Null, where it answers nothing.
        public var reply: ServiceShape
        /// How many files a request may have.
        public var attachments: ClosedRange<Int>
        /// How many files a reply may have.
        public var replyAttachments: ClosedRange<Int>
        /// What its numbers of errors mean.
        public var errors: [Int: String]
    }

    /// The names of all its methods.
    public var allMethods: [ServiceMethod] {
        methods.keys.sorted().map { ServiceMethod(service, version, $0) }
    }

    /// - Throws: ``ServiceDefinitionFaults``: everything that is wrong with it.
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

/// What is wrong with a definition, each with its place.
public struct ServiceDefinitionFaults: Error, Hashable, Sendable, CustomStringConvertible {
    /// One of them.
    public struct Fault: Hashable, Sendable {
        /// Where, as a JSON Pointer (RFC 6901): `/methods/open/parameters/members/url/type`.
        public var place: String
        /// What, and what would be right.
        public var text: String
    }

    /// In the order of the document.
    public let faults: [Fault]

    init(_ faults: [Fault]) { self.faults = faults }

    /// A line for each.
    public var description: String {
        faults.map { "\($0.place.isEmpty ? "/" : $0.place): \($0.text)" }.joined(separator: "\n")
    }
}

/// What a value of a service may be.
public indirect enum ServiceShape: Hashable, Sendable {
    case null
    case bool
    case integer
    /// Also a whole one.
    case number
    case string
    case bytes
    /// Of simple values.
    case array(ServiceShape)
    /// Of simple values and arrays.
    case object([String: Member])
    /// Anything that a service's value can be.
    case any

    /// A member of an object.
    public struct Member: Hashable, Sendable {
        public var shape: ServiceShape
        /// It may be absent.
        public var isOptional: Bool
    }

    /// Why a value is none of it, with its place; nil: it is.
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
    /// - Throws: ``ServiceError`` with ``ServiceError/Code/serviceMethodNotFound`` or ``ServiceError/Code/serviceParametersInvalid``.
    func check(_ parameters: ServiceValue, attachments: Int, of method: String) throws(ServiceError) {
        guard let method = methods[method] else {
            throw ServiceError(.serviceMethodNotFound, "\(service) \(version) has no \(method).")
        }
        if let fault = method.parameters.fault(of: parameters) { throw ServiceError(.serviceParametersInvalid, fault) }
        try Self.check(attachments, in: method.attachments)
    }

    /// The same of a result.
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
