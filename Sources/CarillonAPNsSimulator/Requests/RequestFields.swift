/// The header fields that APNs uses.
struct RequestFields: Hashable, Sendable {
    var authorization: String?
    var id: String?
    var requestID: String?
    var pushType: String?
    var topic: String?
    var expiration: String?
    var priority: String?
    var collapseID: String?
    var channelID: String?
    /// The first field that occurred twice.
    var duplicate: String?

    /// Adds the next field. Returns false if the field is not valid in HTTP/2 (RFC 9113 section 8.2).
    mutating func received(_ name: String, _ value: String) -> Bool {
        switch name {
        case "authorization": Self.take(value, name, &authorization, &duplicate)
        case "apns-id": Self.take(value, name, &id, &duplicate)
        case "apns-request-id": Self.take(value, name, &requestID, &duplicate)
        case "apns-push-type": Self.take(value, name, &pushType, &duplicate)
        case "apns-topic": Self.take(value, name, &topic, &duplicate)
        case "apns-expiration": Self.take(value, name, &expiration, &duplicate)
        case "apns-priority": Self.take(value, name, &priority, &duplicate)
        case "apns-collapse-id": Self.take(value, name, &collapseID, &duplicate)
        case "apns-channel-id": Self.take(value, name, &channelID, &duplicate)
        case "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade": return false
        default: return name.utf8.allSatisfy { !(UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) }
        }
        return true
    }

    private static func take(_ value: String, _ name: String, _ field: inout String?, _ duplicate: inout String?) {
        if field != nil, duplicate == nil { duplicate = name }
        field = value
    }
}
