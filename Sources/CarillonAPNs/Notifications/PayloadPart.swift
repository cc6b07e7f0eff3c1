import CarillonBasics

/// An object of a payload, and the checks of its members. A member with the value null counts as missing.
struct PayloadPart {
    /// The type and range that the value of a member must have.
    enum Kind: String {
        case text = "a text"
        case number = "a number"
        case count = "a whole number of at least 0"
        case fraction = "a number from 0 to 1"
        case flag = "1 or 0"
        case array = "an array"
        case object = "an object"
        case textOrObject = "a text or an object"
    }

    let json: JSONValue
    /// The prefix of member names in error messages.
    var path = ""
    let type: APNsPushType

    subscript(name: String) -> JSONValue? {
        let value = json[name]
        return value == .null ? nil : value
    }

    func text(_ name: String) -> String? { if case .string(let text)? = self[name] { text } else { nil } }

    /// Whether the member is 1 or true.
    func isSet(_ name: String) -> Bool { self[name] == .integer(1) || self[name] == .bool(true) }

    /// Returns the member as an object; nil if it is missing.
    func part(_ name: String) throws(APNsError) -> PayloadPart? {
        try check(name, .object)
        return self[name].map { PayloadPart(json: $0, path: "\(path)\(name).", type: type) }
    }

    func check(_ name: String, _ kind: Kind, isNeeded: Bool = false) throws(APNsError) {
        guard let value = self[name] else {
            if isNeeded { throw needs(name, kind.rawValue) }
            return
        }
        guard kind.includes(value) else { throw NotificationRules.refuse("\"\(path)\(name)\" must be \(kind.rawValue).") }
    }

    /// Rejects a member that the push type ignores.
    func refuse(_ name: String) throws(APNsError) {
        guard self[name] == nil else { throw NotificationRules.ignored("\"\(path)\(name.prefix(60))\"", by: type) }
    }

    func needs(_ name: String, _ value: String) -> APNsError {
        NotificationRules.refuse("A push of type \(type) needs \"\(path)\(name)\": \(value).")
    }

    func belongs(_ name: String, _ place: String) -> APNsError {
        NotificationRules.refuse("\"\(path)\(name)\" belongs \(place).")
    }
}

extension PayloadPart.Kind {
    func includes(_ value: JSONValue) -> Bool {
        switch (self, value) {
        case (.text, .string), (.textOrObject, .string), (.textOrObject, .object), (.object, .object), (.array, .array),
            (.number, .integer), (.number, .number), (.flag, .bool):
            true
        case (.count, .integer(let number)): number >= 0
        case (.flag, .integer(let number)), (.fraction, .integer(let number)): number == 0 || number == 1
        case (.fraction, .number(let number)): (0...1).contains(number)
        default: false
        }
    }
}
