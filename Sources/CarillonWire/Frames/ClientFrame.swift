import CarillonBasics

/// The frames that a client can send over the socket: the frames of Mozilla's push protocol, with the members that a Carillon
/// client adds.
package enum ClientFrame: Equatable, Sendable {
    case hello(Hello)
    case register(Register)
    case unregister(channelID: String, code: Int?)
    case ack([Acknowledgement])
    case nack(version: String, code: Int?)
    case broadcastSubscribe(ids: [String])
    case ping
    /// A request of the HTTP API, from a client that sent `"carillon": 3` or later.
    case request(Request)
    /// A frame of an unknown type.
    case unknown(type: String)

    package struct Hello: Equatable, Sendable {
        package var uaid: String?
        /// The version of Carillon's extension that the client supports; nil for any other client.
        package var carillon: Int?
        package var device: String?
        package var credential: String?
        /// Features that the client supports beyond those of its version: `services`.
        package var also: [String]

        package init(
            uaid: String? = nil, carillon: Int? = nil, device: String? = nil, credential: String? = nil,
            also: [String] = []
        ) {
            self.uaid = uaid
            self.carillon = carillon
            self.device = device
            self.credential = credential
            self.also = also
        }
    }

    package struct Register: Equatable, Sendable {
        package var channelID: String
        package var key: String?
        package var name: String?
        /// The name of a ``WakeMode``.
        package var wake: String?

        package init(channelID: String, key: String? = nil, name: String? = nil, wake: String? = nil) {
            self.channelID = channelID
            self.key = key
            self.name = name
            self.wake = wake
        }
    }

    package struct Request: Equatable, Sendable {
        /// The client's number for the request. The answer repeats it.
        package var id: Int
        package var method: String
        /// The path with the query, percent-encoded.
        package var path: String
        /// The body as JSON; empty if the request has no body.
        package var body: [UInt8]

        package init(id: Int, method: String, path: String, body: [UInt8] = []) {
            self.id = id
            self.method = method
            self.path = path
            self.body = body
        }
    }

    package struct Acknowledgement: Equatable, Sendable {
        package var version: String
        package var code: Int?

        package init(version: String, code: Int? = nil) {
            self.version = version
            self.code = code
        }
    }
}

extension ClientFrame {
    /// Why a text is not a valid frame.
    package enum Fault: Error, Equatable {
        case notJSON
        case badMember(String)
        /// A number is too large for `Double`.
        case numberOutOfRange(line: Int, column: Int)

        /// The reason for a close frame. It is at most 123 bytes long (RFC 6455 section 5.5).
        package var reason: String {
            switch self {
            case .notJSON: "frame_not_json: a frame is one JSON object"
            case .badMember(let name): "frame_invalid: the member \"\(name.prefix(40))\" is missing or of the wrong type"
            case .numberOutOfRange(let line, let column):
                "frame_invalid: the number in line \(line), column \(column) is out of range"
            }
        }
    }

    package init(parsing text: [UInt8]) throws(Fault) {
        guard let object = JSONValue(parsing: text), case .object(let members) = object else {
            if let number = NumberOutOfRange(in: text) { throw .numberOutOfRange(line: number.line, column: number.column) }
            throw .notJSON
        }
        switch object["messageType"] {
        case .string("hello"):
            self = .hello(
                Hello(
                    // As in Mozilla's service, a `uaid` that is not a string counts as unknown.
                    uaid: object["uaid"].map { if case .string(let text) = $0 { text } else { "" } },
                    carillon: try object.integer("carillon"), device: try object.text("device"),
                    credential: try object.text("credential"), also: try object.texts("also")))
        case .string("ack"):
            guard case .array(let updates)? = object["updates"] else { throw .badMember("updates") }
            self = .ack(try updates.map(Acknowledgement.init(parsing:)))
        case .string("nack"):
            self = .nack(version: try object.requiredText("version"), code: try object.integer("code"))
        case .string("register"):
            self = .register(
                Register(
                    channelID: try object.requiredText("channelID"), key: try object.text("key"),
                    name: try object.text("name"), wake: try object.text("wake")))
        case .string("unregister"):
            self = .unregister(channelID: try object.requiredText("channelID"), code: try object.integer("code"))
        case .string("broadcast_subscribe"):
            guard case .object(let broadcasts)? = object["broadcasts"] else { throw .badMember("broadcasts") }
            for broadcast in broadcasts {
                guard case .string = broadcast.value else { throw .badMember("broadcasts") }
            }
            self = .broadcastSubscribe(ids: broadcasts.map(\.name).sorted())
        case .string("ping"):
            self = .ping
        case .string("request"):
            guard let id = try object.integer("id") else { throw .badMember("id") }
            self = .request(
                Request(
                    id: id, method: try object.requiredText("method"), path: try object.requiredText("path"),
                    body: object["body"]?.bytes ?? []))
        case .string(let type):
            self = .unknown(type: type)
        case nil where members.isEmpty:
            self = .ping
        default:
            throw .badMember("messageType")
        }
    }
}

extension ClientFrame.Acknowledgement {
    fileprivate init(parsing value: JSONValue) throws(ClientFrame.Fault) {
        guard case .object = value else { throw .badMember("updates") }
        self.init(version: try value.requiredText("version"), code: try value.integer("code"))
    }
}

extension JSONValue {
    fileprivate func text(_ name: String) throws(ClientFrame.Fault) -> String? {
        switch self[name] {
        case .string(let text): text
        case nil, .null: nil
        default: throw .badMember(name)
        }
    }

    fileprivate func requiredText(_ name: String) throws(ClientFrame.Fault) -> String {
        guard let text = try text(name) else { throw .badMember(name) }
        return text
    }

    fileprivate func texts(_ name: String) throws(ClientFrame.Fault) -> [String] {
        switch self[name] {
        case nil, .null: return []
        case .array(let values):
            return try values.map { value throws(ClientFrame.Fault) in
                guard case .string(let text) = value else { throw .badMember(name) }
                return text
            }
        default: throw .badMember(name)
        }
    }

    fileprivate func integer(_ name: String) throws(ClientFrame.Fault) -> Int? {
        switch self[name] {
        case .integer(let number): number
        case nil, .null: nil
        default: throw .badMember(name)
        }
    }
}

extension ClientFrame {
    /// The frame as the JSON text that a client sends.
    package var text: [UInt8] {
        JSONWriter.object(capacity: 128) { json in
            switch self {
            case .hello(let hello):
                json.member("messageType", "hello")
                json.member("use_webpush", true)
                json.member("uaid", hello.uaid)
                json.member("carillon", hello.carillon)
                json.member("device", hello.device)
                json.member("credential", hello.credential)
                if !hello.also.isEmpty { json.member("also", hello.also) }
            case .register(let register):
                json.member("messageType", "register")
                json.member("channelID", register.channelID)
                json.member("key", register.key)
                json.member("name", register.name)
                json.member("wake", register.wake)
            case .unregister(let channelID, let code):
                json.member("messageType", "unregister")
                json.member("channelID", channelID)
                json.member("code", code)
            case .ack(let updates):
                json.member("messageType", "ack")
                json.member("updates", updates) { json, update in
                    json.member("version", update.version)
                    json.member("code", update.code)
                }
            case .nack(let version, let code):
                json.member("messageType", "nack")
                json.member("version", version)
                json.member("code", code)
            case .broadcastSubscribe(let ids):
                json.member("messageType", "broadcast_subscribe")
                json.member("broadcasts") { json in
                    for id in ids { json.member(untrusted: id, "") }
                }
            case .ping:
                break
            case .request(let request):
                json.member("messageType", "request")
                json.member("id", request.id)
                json.member("method", request.method)
                json.member("path", request.path)
                if !request.body.isEmpty { json.member("body", text: request.body) }
            case .unknown(let type):
                json.member("messageType", type)
            }
        }
    }
}
