import CarillonBasics
import CarillonWire

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A request of this device that has no result yet.
struct StoredCall: Equatable, Sendable {
    var id: String
    var app: String
    var device: String
    var service: String
    var version: String
    var method: String
    var deadlineSeconds: Int64
    var foreground: String
    /// The name of the own key with which the request was sealed, and which opens its reply.
    var key: String
    /// The hash of the sealed request.
    var hash: Data
    /// The paths of the request's files at the sender in the form of ``StoragePaths``, for the event that they were sent.
    var attachments: [String]
    /// The parameters of the request, in JSON, for the same event.
    var parameters: String
    /// The ids of the request's files on the server.
    var files: [String]
    /// Whether the app was notified that the provider received the whole request.
    var isReceived = false
    /// The deadline of a request that was sent to an app on this machine; nil for other requests.
    var localUntil: Int64?
    /// When the call ends, in milliseconds since 1970; nil if an earlier version stored the call.
    var until: Int64?
    /// The user of the provider, if this device is a server and set one.
    var user: String?
    /// Whether the call was cancelled. The server may not have been notified.
    var isUnwanted = false

    var endDate: Date? { until.map { Date(timeIntervalSince1970: Double($0) / 1000) } }
    var peer: ServicePeer { ServicePeer(app: app, device: device) }
    var serviceMethod: ServiceMethod { ServiceMethod(service, version, method) }
}

extension StoredCall {
    var json: JSONValue {
        var texts = [
            ("id", id), ("app", app), ("device", device), ("service", service), ("version", version), ("method", method),
            ("foreground", foreground), ("key", key), ("hash", Base64URL.encode(Array(hash))), ("parameters", parameters),
        ]
        if let user { texts.append(("user", user)) }
        let lists = [("attachments", attachments), ("files", files)]
        var members: [JSONValue.Member] = texts.map { .init(name: $0, value: .string($1)) }
        members += lists.map { .init(name: $0, value: .array($1.map { .string($0) })) }
        members.append(.init(name: "deadline", value: .integer(Int(deadlineSeconds))))
        members.append(.init(name: "isReceived", value: .bool(isReceived)))
        if isUnwanted { members.append(.init(name: "isUnwanted", value: .bool(true))) }
        if let until { members.append(.init(name: "until", value: .integer(Int(until)))) }
        return .object(members)
    }

    init?(_ json: JSONValue) {
        func text(_ name: String) -> String? { if case .string(let text)? = json[name] { text } else { nil } }
        func texts(_ name: String) -> [String]? {
            guard case .array(let list)? = json[name] else { return nil }
            return list.compactMap { if case .string(let text) = $0 { text } else { nil } }
        }
        guard let id = text("id"), let app = text("app"), let device = text("device"), let service = text("service"),
            let version = text("version"), let method = text("method"), let foreground = text("foreground"),
            let key = text("key"), let hash = text("hash").flatMap({ Base64URL.decode($0) }),
            let parameters = text("parameters"), let attachments = texts("attachments"), let files = texts("files"),
            case .integer(let deadline)? = json["deadline"], case .bool(let isReceived)? = json["isReceived"]
        else { return nil }
        self.init(
            id: id, app: app, device: device, service: service, version: version, method: method,
            deadlineSeconds: Int64(deadline), foreground: foreground, key: key, hash: Data(hash),
            attachments: attachments, parameters: parameters, files: files, isReceived: isReceived,
            user: text("user"))
        if case .integer(let until)? = json["until"] { self.until = Int64(until) }
        if case .bool(let isUnwanted)? = json["isUnwanted"] { self.isUnwanted = isUnwanted }
    }
}
