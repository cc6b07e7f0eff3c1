import Foundation

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

struct DeliveredDocument: Encodable {
    var id: String
    var topic: String
    var pushType: String?
    var priority: Int
    var collapseID: String?
    var payload: String
    var title: String?
    var body: String?
    var badge: Int?
    var visible: Bool
    var acceptedAt: Int64
    var expiresAt: Int64?

    init(_ delivered: APNsSimulator.DeliveredNotification) {
        id = delivered.id
        topic = delivered.topic
        pushType = delivered.pushType
        priority = delivered.priority
        collapseID = delivered.collapseID
        payload = String(decoding: delivered.payload, as: UTF8.self)
        title = delivered.title
        body = delivered.body
        badge = delivered.badge
        visible = delivered.isVisible
        acceptedAt = delivered.acceptedAt
        expiresAt = delivered.expiresAt
    }
}

struct DeviceReportDocument: Encodable {
    var device: DeviceDocument
    var shown: [DeliveredDocument]
    var waiting: [DeliveredDocument]
    var replaced: Int
    var discarded: Int
    var expired: Int

    init(_ report: APNsSimulator.DeviceReport) {
        device = DeviceDocument(report.device)
        shown = report.shown.map(DeliveredDocument.init)
        waiting = report.waiting.map(DeliveredDocument.init)
        replaced = report.replaced
        discarded = report.discarded
        expired = report.expired
    }
}

struct RequestDocument: Encodable {
    var number: Int
    var connection: Int
    var stream: UInt32
    var receivedAt: Int64
    var environment: String
    var method: String
    var path: String
    var headers: [String: String]
    var keyID: String?
    var payload: String
    var payloadBytes: Int
    var status: Int
    var reason: String?
    var id: String?

    init(_ request: APNsSimulator.ReceivedRequest) {
        number = request.number
        connection = request.connection
        stream = request.stream
        receivedAt = request.receivedAt
        environment = request.environment.rawValue
        method = request.method
        path = request.path
        headers = request.headers
        keyID = request.keyID
        payload = String(decoding: request.payload, as: UTF8.self)
        payloadBytes = request.payloadBytes
        status = request.status
        reason = request.reason?.rawValue
        id = request.id
    }
}

struct ConnectionDocument: Encodable {
    var number: Int
    var environment: String
    var openedAt: Int64
    var closedAt: Int64?
    var certificate: Bool
    var negotiatedProtocol: String?
    var requests: Int
    var accepted: Int
    var mostStreams: Int
    var mostStreamsAtFirst: Int
    var refusedStreams: Int
    var pings: Int
    var priorityFrames: Int
    var resets: Int
    var headerBlockBytes: Int
    var providerTokens: Int

    init(_ report: ConnectionReport) {
        number = report.number
        environment = report.environment.rawValue
        openedAt = report.openedAt
        closedAt = report.closedAt
        certificate = report.hasCertificate
        negotiatedProtocol = report.negotiatedProtocol
        requests = report.requests
        accepted = report.accepted
        mostStreams = report.mostStreams
        mostStreamsAtFirst = report.mostStreamsAtFirst
        refusedStreams = report.refusedStreams
        pings = report.pings
        priorityFrames = report.priorityFrames
        resets = report.resets
        headerBlockBytes = report.headerBlockBytes
        providerTokens = report.providerTokens
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

struct ChannelDocument: Encodable {
    var id: String
    var bundleID: String
    var environment: String
    var messageStoragePolicy: Int
    var sent: [String]

    init(_ channel: BroadcastChannel) {
        id = channel.id
        bundleID = channel.bundleID
        environment = channel.environment.rawValue
        messageStoragePolicy = channel.storesMessages ? 1 : 0
        sent = channel.sent.map { String(decoding: $0, as: UTF8.self) }
    }
}

struct StatusDocument: Encodable {
    struct PortDocument: Encodable {
        var service: String
        var environment: String
        var host: String
        var port: Int
        var tls: Bool
    }

    var now: Int64
    var keyID: String
    var teamID: String
    var ports: [PortDocument]
    var requests: Int
    var accepted: Int
    var rejected: [String: Int]
    var faults: Int

    init(_ simulator: APNsSimulator) {
        now = simulator.now
        keyID = simulator.signingKey.id
        teamID = simulator.signingKey.teamID
        ports = simulator.ports.map {
            PortDocument(
                service: $0.service.rawValue, environment: $0.environment.rawValue, host: $0.host, port: $0.port,
                tls: $0.isSecure)
        }
        let totals = simulator.totals
        requests = totals.requests
        accepted = totals.accepted
        rejected = Dictionary(uniqueKeysWithValues: totals.rejected.map { ($0.key.rawValue, $0.value) })
        faults = totals.faults
    }
}
