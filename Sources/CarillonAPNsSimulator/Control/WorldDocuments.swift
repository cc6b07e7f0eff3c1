import CarillonBasics

/// A device in JSON.
struct DeviceDocument: ControlDocument, Codable {
    enum Names: String, CodingKey, CaseIterable { case token, topic, environment, state, since, online }
    typealias CodingKeys = Names

    var token: String?
    var topic: String?
    var environment: String?
    /// `active`, `unregistered` or `expired`.
    var state: String?
    /// The time since which the device is not active, in milliseconds since 1970; the present time if it is missing.
    var since: Int64?
    var online: Bool?

    init(_ device: Device) {
        token = device.token
        topic = device.topic
        environment = device.environment.rawValue
        online = device.isOnline
        switch device.state {
        case .active: state = "active"
        case .unregistered(let moment):
            state = "unregistered"
            since = moment
        case .expired(let moment):
            state = "expired"
            since = moment
        }
    }

    func applied(to device: inout Device, now: Int64) throws(ControlRefusal) {
        if let topic { device.topic = topic }
        if let online { device.isOnline = online }
        switch state {
        case nil: break
        case "active": device.state = .active
        case "unregistered": device.state = .unregistered(since: since ?? now)
        case "expired": device.state = .expired(since: since ?? now)
        default: throw ControlRefusal(400, "\"state\" must be active, unregistered or expired.")
        }
    }
}

extension APNsSimulator.DeliveredNotification {
    fileprivate var document: JSONValue {
        [
            "id": .string(id), "topic": .string(topic), "pushType": pushType.map(JSONValue.string),
            "priority": .integer(priority), "collapseID": collapseID.map(JSONValue.string),
            "payload": .string(String(decoding: payload, as: UTF8.self)), "title": title.map(JSONValue.string),
            "body": body.map(JSONValue.string), "badge": badge.map(JSONValue.integer), "visible": .bool(isVisible),
            "acceptedAt": .integer(Int(acceptedAt)), "expiresAt": expiresAt.map { .integer(Int($0)) },
        ]
    }
}

struct DeviceReportDocument: Encodable {
    var device: DeviceDocument
    var shown: [JSONValue]
    var waiting: [JSONValue]
    var replaced: Int
    var discarded: Int
    var expired: Int

    init(_ report: APNsSimulator.DeviceReport) {
        device = DeviceDocument(report.device)
        shown = report.shown.map(\.document)
        waiting = report.waiting.map(\.document)
        replaced = report.replaced
        discarded = report.discarded
        expired = report.expired
    }
}

extension APNsSimulator.ReceivedRequest {
    var document: JSONValue {
        [
            "number": .integer(number), "connection": .integer(connection), "stream": .integer(Int(stream)),
            "receivedAt": .integer(Int(receivedAt)), "environment": .string(environment.rawValue),
            "method": .string(method), "path": .string(path),
            "headers": .object(headers.map { .init(name: $0, value: .string($1)) }), "keyID": keyID.map(JSONValue.string),
            "payload": .string(String(decoding: payload, as: UTF8.self)), "payloadBytes": .integer(payloadBytes),
            "status": .integer(status), "reason": (reason?.rawValue).map(JSONValue.string), "id": id.map(JSONValue.string),
        ]
    }
}

extension ConnectionReport {
    var document: JSONValue {
        [
            "number": .integer(number), "environment": .string(environment.rawValue),
            "openedAt": .integer(Int(openedAt)), "closedAt": closedAt.map { .integer(Int($0)) },
            "certificate": .bool(hasCertificate), "negotiatedProtocol": negotiatedProtocol.map(JSONValue.string),
            "requests": .integer(requests), "accepted": .integer(accepted), "mostStreams": .integer(mostStreams),
            "mostStreamsAtFirst": .integer(mostStreamsAtFirst), "refusedStreams": .integer(refusedStreams),
            "pings": .integer(pings), "priorityFrames": .integer(priorityFrames), "resets": .integer(resets),
            "headerBlockBytes": .integer(headerBlockBytes), "providerTokens": .integer(providerTokens),
        ]
    }
}

struct AppDocument: ControlDocument, Codable {
    enum Names: String, CodingKey, CaseIterable { case bundleID, team, broadcast }
    typealias CodingKeys = Names

    var bundleID: String?
    var team: String
    var broadcast: Bool?
}

struct KeyDocument: ControlDocument {
    enum Names: String, CodingKey, CaseIterable { case team, privateKey, publicKey, environments, topics, relatedKey }
    typealias CodingKeys = Names

    var team: String
    var privateKey: String?
    var publicKey: String?
    var environments: [String]?
    var topics: [String]?
    var relatedKey: String?
}

struct CertificateDocument: ControlDocument {
    enum Names: String, CodingKey, CaseIterable { case topics, environments, days, keyType }
    typealias CodingKeys = Names

    var topics: [String]
    var environments: [String]?
    var days: Int?
    var keyType: String?
}

struct ClockDocument: ControlDocument {
    enum Names: String, CodingKey, CaseIterable { case advanceSeconds }
    typealias CodingKeys = Names

    var advanceSeconds: Int
}

extension BroadcastChannel {
    var document: JSONValue {
        [
            "id": .string(id), "bundleID": .string(bundleID), "environment": .string(environment.rawValue),
            "messageStoragePolicy": .integer(storesMessages ? 1 : 0),
            "sent": .array(sent.map { .string(String(decoding: $0, as: UTF8.self)) }),
        ]
    }
}

extension APNsSimulator {
    var statusDocument: JSONValue {
        let totals = totals
        return [
            "now": .integer(Int(now)), "keyID": .string(signingKey.id), "teamID": .string(signingKey.teamID),
            "ports": .array(ports.map(\.document)), "requests": .integer(totals.requests),
            "accepted": .integer(totals.accepted),
            "rejected": .object(totals.rejected.map { .init(name: $0.rawValue, value: .integer($1)) }),
            "faults": .integer(totals.faults),
        ]
    }
}

extension APNsSimulator.Port {
    fileprivate var document: JSONValue {
        [
            "service": .string(service.rawValue), "environment": .string(environment.rawValue), "host": .string(host),
            "port": .integer(port), "tls": .bool(isSecure),
        ]
    }
}
