import CarillonBasics
import CarillonWire

/// Reads a definition, and collects its faults.
struct DefinitionReader {
    var faults: [ServiceDefinitionFaults.Fault] = []

    static let mostMethods = 100
    static let mostMembers = 100
    static let mostErrors = 1000

    private mutating func note(_ place: String, _ text: String) { faults.append(.init(place: place, text: text)) }

    /// Returns a reference token of a JSON Pointer (RFC 6901 section 3), with its slash.
    static func part(_ name: String) -> String {
        var text = ""
        for character in name { text += character == "~" ? "~0" : character == "/" ? "~1" : String(character) }
        return "/" + text
    }

    /// Returns the members of an object. Unknown members are faults if `known` is not nil.
    private mutating func members(of json: JSONValue, _ place: String, known: [String]?) -> [JSONValue.Member] {
        guard case .object(let members) = json else {
            note(place, "There must be an object.")
            return []
        }
        var seen: Set<String> = []
        for member in members {
            if !seen.insert(member.name).inserted { note(place + Self.part(member.name), "It is there twice.") }
            if let known, !known.contains(member.name) {
                note(place + Self.part(member.name), "It is unknown; known are: \(known.joined(separator: ", ")).")
            }
        }
        return members
    }

    private mutating func text(_ json: JSONValue, _ name: String, _ place: String, isNeeded: Bool = false) -> String {
        switch json[name] {
        case .string(let text): return text
        case nil where !isNeeded: return ""
        case nil: note(place + Self.part(name), "It is missing.")
        default: note(place + Self.part(name), "It must be a text.")
        }
        return ""
    }

    // MARK: The document

    mutating func definition(_ json: JSONValue) -> ServiceDefinition {
        _ = members(of: json, "", known: ["service-id", "version", "title", "description", "methods"])
        let service = text(json, "service-id", "", isNeeded: true)
        if !service.isEmpty, ServiceID(service) == nil {
            note("/service-id", "It must be a domain in reverse, in lower case, such as com.example.transfer-file.")
        }
        let version = text(json, "version", "", isNeeded: true)
        if !version.isEmpty, ServiceVersion(version) == nil {
            note("/version", "It must be one to four numbers with dots between, such as 1.0.0.0.")
        }
        let title = text(json, "title", "", isNeeded: true)
        let description = text(json, "description", "")
        var methods: [String: ServiceDefinition.Method] = [:]
        switch json["methods"] {
        case nil: note("/methods", "It is missing.")
        case .some(let list):
            let named = members(of: list, "/methods", known: nil)
            if named.isEmpty { note("/methods", "There must be a method.") }
            if named.count > Self.mostMethods { note("/methods", "There may be \(Self.mostMethods) methods.") }
            for member in named.prefix(Self.mostMethods) {
                let place = "/methods" + Self.part(member.name)
                if MethodName(member.name) == nil {
                    note(place, "A method is named by a letter and up to 63 letters, digits and \"_\".")
                }
                methods[member.name] = method(member.value, place)
            }
        }
        return ServiceDefinition(
            service: service, version: version, title: title, description: description, methods: methods)
    }

    private mutating func method(_ json: JSONValue, _ place: String) -> ServiceDefinition.Method {
        let known = ["description", "parameters", "reply", "attachments", "replyAttachments", "errors"]
        _ = members(of: json, place, known: known)
        return ServiceDefinition.Method(
            description: text(json, "description", place),
            parameters: json["parameters"].map { shape($0, place + "/parameters", .whole) } ?? .null,
            reply: json["reply"].map { shape($0, place + "/reply", .whole) } ?? .null,
            attachments: range(json["attachments"], place + "/attachments"),
            replyAttachments: range(json["replyAttachments"], place + "/replyAttachments"),
            errors: errors(json["errors"], place + "/errors"))
    }

    private mutating func range(_ json: JSONValue?, _ place: String) -> ClosedRange<Int> {
        guard let json else { return 0...0 }
        let before = faults.count
        _ = members(of: json, place, known: ["minimum", "maximum"])
        guard faults.count == before else { return 0...0 }
        func number(_ name: String, _ absent: Int) -> Int? {
            switch json[name] {
            case nil: absent
            case .integer(let number) where (0...SealedContent.mostFiles).contains(number): number
            default: nil
            }
        }
        guard let least = number("minimum", 0) else {
            note(place + "/minimum", "It must be a number of files, 0 to \(SealedContent.mostFiles).")
            return 0...0
        }
        guard let most = number("maximum", SealedContent.mostFiles), most >= least else {
            note(place + "/maximum", "It must be a number of files, \(least) to \(SealedContent.mostFiles).")
            return 0...0
        }
        return least...most
    }

    private mutating func errors(_ json: JSONValue?, _ place: String) -> [Int: String] {
        guard let json else { return [:] }
        var errors: [Int: String] = [:]
        for member in members(of: json, place, known: nil).prefix(Self.mostErrors) {
            guard let number = Int(member.name), String(number) == member.name, case .string(let text) = member.value else {
                note(place + Self.part(member.name), "Each error is a whole number, and a text that says what it means.")
                continue
            }
            errors[number] = text
        }
        return errors
    }

    // MARK: Shapes

    private enum Depth {
        case whole
        case member
        case simple
    }

    private static let simple: [String: ServiceShape] = [
        "null": .null, "boolean": .bool, "integer": .integer, "number": .number, "string": .string, "bytes": .bytes,
    ]

    private mutating func shape(_ json: JSONValue, _ place: String, _ depth: Depth) -> ServiceShape {
        var known = ["type", "description"]
        if depth == .member { known.append("optional") }
        guard case .object = json else {
            note(place, "There must be an object with a type.")
            return .null
        }
        guard case .string(let name)? = json["type"] else {
            note(place + "/type", "There must be a type.")
            return .null
        }
        if let simple = Self.simple[name] {
            _ = members(of: json, place, known: known)
            return simple
        }
        switch (name, depth) {
        case ("any", .whole):
            _ = members(of: json, place, known: known)
            return .any
        case ("array", .whole), ("array", .member):
            _ = members(of: json, place, known: known + ["items"])
            guard let items = json["items"] else {
                note(place + "/items", "It is missing.")
                return .array(.null)
            }
            return .array(shape(items, place + "/items", .simple))
        case ("object", .whole):
            _ = members(of: json, place, known: known + ["members"])
            return .object(objectMembers(json["members"], place + "/members"))
        case ("array", _), ("object", _), ("any", _):
            note(
                place + "/type",
                "It is too deep: an array has simple values, and an object simple values and arrays of them.")
        default:
            let names = Self.simple.keys.sorted() + ["array", "object", "any"]
            note(place + "/type", "There is no type \"\(name)\"; there are: \(names.joined(separator: ", ")).")
        }
        return .null
    }

    private mutating func objectMembers(_ json: JSONValue?, _ place: String) -> [String: ServiceShape.Member] {
        guard let json else {
            note(place, "It is missing.")
            return [:]
        }
        var result: [String: ServiceShape.Member] = [:]
        let list = members(of: json, place, known: nil)
        if list.count > Self.mostMembers { note(place, "An object may have \(Self.mostMembers) members.") }
        for member in list.prefix(Self.mostMembers) {
            let place = place + Self.part(member.name)
            var isOptional = false
            switch member.value["optional"] {
            case nil: break
            case .bool(let value): isOptional = value
            default: note(place + "/optional", "It must be true or false.")
            }
            result[member.name] = .init(shape: shape(member.value, place, .member), isOptional: isOptional)
        }
        return result
    }
}
