#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// What a client may send over the socket: the frames of Mozilla's push protocol, and the members that a Carillon
/// client adds to them.
package enum ClientFrame: Equatable, Sendable {
    case hello(Hello)
    case register(Register)
    case unregister(channelID: String, code: Int?)
    case ack([Acknowledgement])
    case nack(version: String, code: Int?)
    case broadcastSubscribe(ids: [String])
    case ping

    package struct Hello: Equatable, Sendable {
        package var uaid: String?
        /// The version of Carillon's extension that the client speaks; nil for any other client.
        package var carillon: Int?
        package var device: String?
        package var credential: String?

        package init(uaid: String? = nil, carillon: Int? = nil, device: String? = nil, credential: String? = nil) {
            self.uaid = uaid
            self.carillon = carillon
            self.device = device
            self.credential = credential
        }
    }

    package struct Register: Equatable, Sendable {
        package var channelID: String
        package var key: String?
        package var name: String?

        package init(channelID: String, key: String? = nil, name: String? = nil) {
            self.channelID = channelID
            self.key = key
            self.name = name
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
    /// Why a text is no frame.
    package enum Fault: Error, Equatable {
        case notJSON
        case unknownType(String)
        case badMember(String)

        /// Short enough for the reason of a close frame (RFC 6455 section 5.5: 123 bytes).
        package var reason: String {
            switch self {
            case .notJSON: "frame_not_json: a frame is one JSON object"
            case .unknownType(let type): "frame_unknown: no messageType \"\(type.prefix(40))\" exists"
            case .badMember(let name): "frame_invalid: the member \"\(name.prefix(40))\" is missing or of the wrong type"
            }
        }
    }

    package init(parsing text: some Sequence<UInt8>) throws(Fault) {
        let members: Members
        do {
            members = try JSONDecoder().decode(Members.self, from: Data(text))
        } catch DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context) {
            guard let member = context.codingPath.first else { throw .notJSON }
            throw .badMember(member.stringValue)
        } catch DecodingError.keyNotFound(let key, _) {
            throw .badMember(key.stringValue)
        } catch {
            throw .notJSON
        }
        self = try members.frame()
    }

    private struct Members: Decodable {
        var messageType: String?
        var uaid: String?
        var carillon: Int?
        var device: String?
        var credential: String?
        var channelID: String?
        var key: String?
        var name: String?
        var code: Int?
        var version: String?
        var updates: [Update]?
        var broadcasts: [String: String]?
        var isEmpty = false

        struct Update: Decodable {
            var version: String
            var code: Int?
        }

        enum CodingKeys: String, CodingKey {
            case messageType, uaid, carillon, device, credential, channelID, key, name, code, version, updates, broadcasts
        }

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            messageType = try container.decodeIfPresent(String.self, forKey: .messageType)
            switch messageType {
            case "hello":
                uaid = (try? container.decodeIfPresent(String.self, forKey: .uaid)) ?? ""
                carillon = try container.decodeIfPresent(Int.self, forKey: .carillon)
                device = try container.decodeIfPresent(String.self, forKey: .device)
                credential = try container.decodeIfPresent(String.self, forKey: .credential)
                if !container.contains(.uaid) { uaid = nil }
            case "ack":
                updates = try container.decode([Update].self, forKey: .updates)
            case "nack":
                version = try container.decode(String.self, forKey: .version)
                code = try container.decodeIfPresent(Int.self, forKey: .code)
            case "register":
                channelID = try container.decode(String.self, forKey: .channelID)
                key = try container.decodeIfPresent(String.self, forKey: .key)
                name = try container.decodeIfPresent(String.self, forKey: .name)
            case "unregister":
                channelID = try container.decode(String.self, forKey: .channelID)
                code = try container.decodeIfPresent(Int.self, forKey: .code)
            case "broadcast_subscribe":
                broadcasts = try container.decode([String: String].self, forKey: .broadcasts)
            case nil:
                isEmpty = try decoder.container(keyedBy: AnyKey.self).allKeys.isEmpty
            default:
                break
            }
        }

        func frame() throws(Fault) -> ClientFrame {
            switch messageType {
            case "hello": .hello(Hello(uaid: uaid, carillon: carillon, device: device, credential: credential))
            case "register": .register(Register(channelID: channelID ?? "", key: key, name: name))
            case "unregister": .unregister(channelID: channelID ?? "", code: code)
            case "ack": .ack((updates ?? []).map { Acknowledgement(version: $0.version, code: $0.code) })
            case "nack": .nack(version: version ?? "", code: code)
            case "broadcast_subscribe": .broadcastSubscribe(ids: (broadcasts ?? [:]).keys.sorted())
            case "ping": .ping
            case nil:
                if isEmpty { .ping } else { throw .badMember("messageType") }
            case .some(let type): throw .unknownType(type)
            }
        }
    }
}

/// A member name that is not known beforehand.
struct AnyKey: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }
    init?(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
}

extension ClientFrame {
    /// The text of the frame, as a client sends it.
    package var text: [UInt8] {
        var json = JSONText(capacity: 128)
        switch self {
        case .hello(let hello):
            json.add("messageType", "hello")
            json.add("use_webpush", true)
            if let uaid = hello.uaid { json.add("uaid", uaid) }
            if let version = hello.carillon { json.add("carillon", Int64(version)) }
            if let device = hello.device { json.add("device", device) }
            if let credential = hello.credential { json.add("credential", credential) }
        case .register(let register):
            json.add("messageType", "register")
            json.add("channelID", register.channelID)
            if let key = register.key { json.add("key", key) }
            if let name = register.name { json.add("name", name) }
        case .unregister(let channelID, let code):
            json.add("messageType", "unregister")
            json.add("channelID", channelID)
            if let code { json.add("code", Int64(code)) }
        case .ack(let updates):
            json.add("messageType", "ack")
            json.add("updates", updates) { json, update in
                json.add("version", update.version)
                if let code = update.code { json.add("code", Int64(code)) }
            }
        case .nack(let version, let code):
            json.add("messageType", "nack")
            json.add("version", version)
            if let code { json.add("code", Int64(code)) }
        case .broadcastSubscribe(let ids):
            json.add("messageType", "broadcast_subscribe")
            json.add("broadcasts") { json in
                for id in ids { json.add(untrustedName: id, "") }
            }
        case .ping:
            break
        }
        return json.finished()
    }
}
