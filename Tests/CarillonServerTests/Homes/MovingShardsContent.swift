import CarillonBasics
import CarillonWire

/// The content of an envelope of a scenario.
enum ScenarioContent: Hashable, Sendable {
    /// A message, by the number in its body.
    case message(Int)
    /// A crossing of an item, for the subscription with a key.
    case firing(String, Int)
    /// An update by its id. Attempt 0 withdraws the update.
    case update(String, entry: Int, attempt: Int)
    /// An event of a request between devices, by the id of the request.
    case service(String, String)
    case other(String)

    init(_ frame: JSONValue) {
        self = Self.known(frame) ?? .other(String(String(decoding: frame.bytes, as: UTF8.self).prefix(300)))
    }

    private static func known(_ frame: JSONValue) -> ScenarioContent? {
        switch frame["messageType"] {
        case .string("notification")?:
            guard case .string(let data)? = frame["data"], let body = Base64URL.decode(data) else { return nil }
            return Int(String(decoding: body, as: UTF8.self)).map { .message($0) }
        case .string("fired")?:
            guard let fired = frame["fired"], case .string(let key)? = fired["key"],
                case .string(let title)? = fired["notification"]?["title"]
            else { return nil }
            return Int(title).map { .firing(key, $0) }
        case .string("update")?:
            guard case .integer(let entry)? = frame["entry"], case .integer(let attempt)? = frame["attempt"],
                case .string(let id)? = frame["update"]?["id"]
            else { return nil }
            return .update(id, entry: entry, attempt: attempt)
        case .string("service")?:
            guard let event = frame["service"].flatMap({ ServiceEvent($0.bytes) }) else { return nil }
            return .service(name(of: event), event.id.description)
        default: return nil
        }
    }

    private static func name(of event: ServiceEvent) -> String {
        switch event {
        case .request: "request"
        case .cancelled: "cancelled"
        case .received: "received"
        case .reply: "reply"
        case .failed(_, let code): "failed with \(code)"
        }
    }

    /// Whether the frame asks the device to fetch everything.
    static func isResync(_ frame: JSONValue) -> Bool { frame["update"]?["payload"]?["action"] == .string("resync") }
}
