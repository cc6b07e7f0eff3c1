import NIOCore

/// The names of the headers that requests have.
enum HeaderName: String, Sendable {
    case authority = ":authority"
    case path = ":path"
    case authorization
    case apnsTopic = "apns-topic"
    case apnsPushType = "apns-push-type"
    case apnsPriority = "apns-priority"
    case apnsExpiration = "apns-expiration"
    case apnsCollapseID = "apns-collapse-id"
    case apnsID = "apns-id"
    case apnsRequestID = "apns-request-id"
    case apnsChannelID = "apns-channel-id"
    case contentType = "content-type"

    /// The index of the name in HPACK's static table (RFC 7541 appendix A).
    var staticIndex: Int? {
        switch self {
        case .authority: 1
        case .path: 4
        case .authorization: 23
        case .contentType: 31
        default: nil
        }
    }

    /// Whether its values recur. Other values would only evict useful entries from the peer's table.
    var recurs: Bool {
        switch self {
        case .authority, .authorization, .apnsTopic, .apnsPushType, .apnsPriority, .contentType: true
        case .path, .apnsExpiration, .apnsCollapseID, .apnsID, .apnsRequestID, .apnsChannelID: false
        }
    }
}

/// One header of a request.
struct HeaderField: Hashable, Sendable {
    var name: HeaderName
    var value: String

    init(_ name: HeaderName, _ value: String) {
        self.name = name
        self.value = value
    }
}

/// The headers that all requests of one notification share. It is a class so that a connection recognises, without a
/// comparison, a head that it has encoded before.
final class APNsRequestHead: Sendable {
    enum Method: Sendable { case post, get, delete }

    let method: Method
    let fields: [HeaderField]

    init(method: Method = .post, fields: [HeaderField]) {
        self.method = method
        self.fields = fields
    }

    func hasSameFields(as other: APNsRequestHead) -> Bool {
        self === other || (method == other.method && fields == other.fields)
    }
}

/// The bytes of a request's body, shared by all requests of one notification.
struct RequestBody: Sendable {
    let buffer: ByteBuffer

    init(_ bytes: [UInt8]) { buffer = ByteBuffer(bytes: bytes) }

    var count: Int { buffer.readableBytes }

    static let none = RequestBody([])
}
