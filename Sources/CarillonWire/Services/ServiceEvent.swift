package import CarillonBasics

/// An event of a service request for a device, sent in a ``ServiceFrame``. The device stores the event before it acknowledges it.
package enum ServiceEvent: Equatable, Sendable {
    /// For the provider: a new request.
    case request(RequestHeader, from: ServicePeer, expiresAt: Int64, SealedContent)
    /// For the provider: the consumer cancelled the request.
    case cancelled(ServiceRequestID)
    /// For the consumer: the provider has stored the whole request on disk.
    case received(ServiceRequestID)
    /// For the consumer: the provider's reply, which is the only result.
    case reply(ServiceRequestID, from: ServicePeer, SealedContent)
    /// For the consumer: the request failed without a reply. This failure is the only result. `code` is the name of an
    /// ``ErrorCode``.
    case failed(ServiceRequestID, code: String)

    /// Returns nil for a body that is not an event, or that is an event of a later version.
    package init?(_ body: [UInt8]) {
        guard let json = JSONValue(parsing: body), case .string(let name)? = json["event"],
            case .string(let idText)? = json["id"], let id = ServiceRequestID(idText)
        else { return nil }
        switch name {
        case "request":
            guard let header = try? RequestHeader(json), let from = json["from"].flatMap(ServicePeer.init),
                case .integer(let expiresAt)? = json["expiresAt"], let content = try? SealedContent(json)
            else { return nil }
            self = .request(header, from: from, expiresAt: Int64(expiresAt), content)
        case "reply":
            guard let from = json["from"].flatMap(ServicePeer.init), let content = try? SealedContent(json) else {
                return nil
            }
            self = .reply(id, from: from, content)
        case "cancelled": self = .cancelled(id)
        case "received": self = .received(id)
        case "failed":
            guard case .string(let code)? = json["code"] else { return nil }
            self = .failed(id, code: code)
        default: return nil
        }
    }

    package var id: ServiceRequestID {
        switch self {
        case .request(let header, _, _, _): header.id
        case .cancelled(let id), .received(let id), .reply(let id, _, _), .failed(let id, _): id
        }
    }

    package var body: [UInt8] {
        var members: [JSONValue.Member]
        switch self {
        case .request(let header, let from, let expiresAt, let content):
            members =
                header.members + [
                    .init(name: "event", value: .string("request")), .init(name: "from", value: from.json),
                    .init(name: "expiresAt", value: .integer(Int(expiresAt))),
                ]
            members += content.members
        case .reply(let id, let from, let content):
            members = [
                .init(name: "event", value: .string("reply")), .init(name: "id", value: .string(id.description)),
                .init(name: "from", value: from.json),
            ]
            members += content.members
        case .cancelled(let id): members = Self.short("cancelled", id)
        case .received(let id): members = Self.short("received", id)
        case .failed(let id, let code):
            members = Self.short("failed", id) + [.init(name: "code", value: .string(code))]
        }
        return JSONValue.object(members).bytes
    }

    private static func short(_ event: String, _ id: ServiceRequestID) -> [JSONValue.Member] {
        [.init(name: "event", value: .string(event)), .init(name: "id", value: .string(id.description))]
    }
}

/// An install of an app, as other installs see it.
package struct ServicePeer: Hashable, Sendable {
    package var app: String
    package var device: String

    package init(app: String, device: String) {
        self.app = app
        self.device = device
    }

    package init?(_ json: JSONValue) {
        guard case .string(let app)? = json["app"], AppID(app) != nil, case .string(let device)? = json["device"],
            DeviceID(device) != nil
        else { return nil }
        self.init(app: app, device: device)
    }

    package var json: JSONValue {
        .object([.init(name: "app", value: .string(app)), .init(name: "device", value: .string(device))])
    }
}
