package import CarillonBasics

/// The payload of an update, in the form of its kind.
package enum UpdatePayload: Equatable, Sendable {
    case content(ContentChange)
    case definitions
    case status(DeviceStatusChange)
    case popup(Popup)
    /// An object with any members.
    case open(JSONValue)

    /// The largest payload, in bytes of JSON.
    package static let mostBytes = 8192

    /// - Throws: ``Refusal`` that names the member that does not fit the kind.
    package init(_ json: JSONValue?, of kind: UpdateKind) throws(Refusal) {
        let json = json ?? .object([])
        guard case .object(let members) = json else {
            throw Refusal(.fieldInvalid, "The field \"payload\" must be an object.")
        }
        guard json.names.count == members.count else {
            throw Refusal(.fieldInvalid, "A member of the payload is there twice.")
        }
        guard json.bytes.count <= Self.mostBytes else {
            throw Refusal(.fieldInvalid, "The payload may have \(Self.mostBytes) bytes as JSON.")
        }
        let reader = PayloadReader(json)
        switch kind {
        case .content: self = .content(try ContentChange(reader))
        case .definitions:
            try reader.refuseOthers(than: [], of: "definitions")
            self = .definitions
        case .status: self = .status(try DeviceStatusChange(reader))
        case .popup: self = .popup(try Popup(reader))
        case .open: self = .open(json)
        }
    }
}

/// The server becomes unavailable for a while, or is available again.
package enum DeviceStatusChange: Equatable, Sendable {
    /// Times are in milliseconds since 1970. Without `from` the maintenance begins at once. Without `until` it ends when its end
    /// is reported.
    case maintenance(from: Int64?, until: Int64?)
    case over
}

/// A dialog for the user.
package struct Popup: Equatable, Sendable {
    package enum Style: String, CaseIterable, Sendable {
        case emergency, failure, important, notification
    }

    package var style: Style
    package var title: String
    package var lines: [String]
    /// A file that is downloaded with the dialog and opened by its button.
    package var attachment: Attachment?

    package enum Attachment: Equatable, Sendable {
        case object(String)
        case document(String)
    }

    package init(style: Style, title: String, lines: [String] = [], attachment: Attachment? = nil) {
        self.style = style
        self.title = title
        self.lines = lines
        self.attachment = attachment
    }

    package static let mostTitleBytes = 256
    package static let mostLines = 50
    package static let mostLineBytes = 1024
}

/// The longest name of an object of the app's content, in bytes of UTF-8.
package let longestObjectName = 256

/// Reads the members of a payload.
private struct PayloadReader {
    let json: JSONValue

    init(_ json: JSONValue) { self.json = json }

    func refuseOthers(than known: Set<String>, of what: String) throws(Refusal) {
        guard let unknown = json.names.subtracting(known).min() else { return }
        let list = known.isEmpty ? "none" : known.sorted().joined(separator: ", ")
        throw Refusal(
            .fieldUnknown, "The member \"payload.\(unknown.prefix(60))\" is unknown; of \(what) known are: \(list).")
    }

    func text(_ name: String, upTo bytes: Int) throws(Refusal) -> String? {
        switch json[name] {
        case nil, .null: return nil
        case .string(let text) where (1...bytes).contains(text.utf8.count): return text
        default: throw Self.refusal(name, "a text of 1 to \(bytes) bytes")
        }
    }

    func requiredText(_ name: String, upTo bytes: Int) throws(Refusal) -> String {
        guard let text = try text(name, upTo: bytes) else {
            throw Refusal(.fieldMissing, "The member \"payload.\(name)\" is missing.")
        }
        return text
    }

    func choice<Choice: RawRepresentable & CaseIterable>(_ name: String) throws(Refusal) -> Choice
    where Choice.RawValue == String {
        let text = try requiredText(name, upTo: 64)
        guard let choice = Choice(rawValue: text) else {
            throw Self.refusal(name, "one of: \(Choice.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        return choice
    }

    func depth(_ name: String) throws(Refusal) -> Int {
        switch json[name] {
        case nil, .null: return 0
        case .integer(let depth) where (0...100).contains(depth): return depth
        default: throw Self.refusal(name, "a whole number from 0 to 100")
        }
    }

    func moment(_ name: String) throws(Refusal) -> Int64? {
        guard let text = try text(name, upTo: 40) else { return nil }
        guard let moment = Timestamp3339.milliseconds(text) else {
            throw Self.refusal(name, "a moment such as 2026-01-31T12:00:00.000Z")
        }
        return moment
    }

    func texts(_ name: String, most: Int, upTo bytes: Int) throws(Refusal) -> [String] {
        let refusal = Self.refusal(name, "a list of at most \(most) texts of at most \(bytes) bytes")
        switch json[name] {
        case nil, .null: return []
        case .array(let values) where values.count <= most:
            return try values.map { value throws(Refusal) in
                guard case .string(let text) = value, text.utf8.count <= bytes else { throw refusal }
                return text
            }
        default: throw refusal
        }
    }

    static func refusal(_ name: String, _ wanted: String) -> Refusal {
        Refusal(.fieldInvalid, "The member \"payload.\(name)\" must be \(wanted).")
    }
}

extension ContentChange {
    private enum Action: String, CaseIterable {
        case refresh, remove, roots, infrastructures, resync
    }

    fileprivate init(_ reader: PayloadReader) throws(Refusal) {
        let action: Action = try reader.choice("action")
        switch action {
        case .refresh:
            try reader.refuseOthers(than: ["action", "object", "parents", "children"], of: "refresh")
            self = .refresh(
                object: try reader.requiredText("object", upTo: longestObjectName), parents: try reader.depth("parents"),
                children: try reader.depth("children"))
        case .remove:
            try reader.refuseOthers(than: ["action", "object"], of: "remove")
            self = .remove(object: try reader.requiredText("object", upTo: longestObjectName))
        case .roots, .infrastructures, .resync:
            try reader.refuseOthers(than: ["action"], of: action.rawValue)
            self = action == .roots ? .roots : action == .resync ? .resync : .infrastructures
        }
    }
}

extension DeviceStatusChange {
    private enum Status: String, CaseIterable {
        case maintenance, over
    }

    fileprivate init(_ reader: PayloadReader) throws(Refusal) {
        let status: Status = try reader.choice("status")
        switch status {
        case .over:
            try reader.refuseOthers(than: ["status"], of: "over")
            self = .over
        case .maintenance:
            try reader.refuseOthers(than: ["status", "from", "until"], of: "maintenance")
            let (from, until) = (try reader.moment("from"), try reader.moment("until"))
            if let until, let from, until <= from { throw PayloadReader.refusal("until", "later than \"from\"") }
            self = .maintenance(from: from, until: until)
        }
    }
}

extension Popup {
    fileprivate init(_ reader: PayloadReader) throws(Refusal) {
        try reader.refuseOthers(than: ["style", "title", "lines", "object", "document"], of: "popup")
        self.init(
            style: try reader.choice("style"), title: try reader.requiredText("title", upTo: Self.mostTitleBytes),
            lines: try reader.texts("lines", most: Self.mostLines, upTo: Self.mostLineBytes))
        let object = try reader.text("object", upTo: longestObjectName)
        let document = try reader.text("document", upTo: longestObjectName)
        switch (object, document) {
        case (nil, nil): attachment = nil
        case (let object?, nil): attachment = .object(object)
        case (nil, let document?): attachment = .document(document)
        default: throw PayloadReader.refusal("document", "absent where there is an \"object\"")
        }
    }
}
