import CarillonCore
import CarillonWire
import Metrics
import NIOCore
import NIOHTTP1

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A whole answer to one request.
struct HTTPAnswer: Sendable {
    var status: HTTPResponseStatus
    var headers: HTTPHeaders
    var body = ByteBuffer()
    /// Of the body, in bytes; nil in an answer to HEAD when the body's length is not known.
    var length: Int?

    init(status: HTTPResponseStatus, headers: HTTPHeaders, body: ByteBuffer = ByteBuffer()) {
        self.status = status
        self.headers = headers
        self.body = body
        length = body.readableBytes
    }
}

extension HTTPAnswer {
    /// A refusal as a problem document, counted under its code.
    init(_ refusal: Refusal) {
        refusals[refusal.code]?.increment()
        // The document is our own type, of texts and a number: encoding it cannot fail.
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let document = (try? encoder.encode(ProblemDocument(refusal))) ?? Data()
        // A token that is gone stays gone: a sender's library may remember it for a day, as of other push services.
        let caching = refusal.code == .tokenGone ? "max-age=86400" : "no-store"
        var headers: HTTPHeaders = ["content-type": ProblemDocument.mediaType, "cache-control": caching]
        if let seconds = refusal.retryAfterSeconds { headers.add(name: "retry-after", value: String(seconds)) }
        switch refusal.code {
        // RFC 8292 section 3 forbids a challenge for its own scheme; Bearer is what the drafts before it had.
        case .credentialMissing, .credentialInvalid, .vapidMissing:
            headers.add(name: "www-authenticate", value: "Bearer")
        case .upgradeRequired: headers.add(name: "sec-websocket-version", value: "13")
        default: break
        }
        self.init(
            status: HTTPResponseStatus(statusCode: refusal.code.status), headers: headers,
            body: ByteBuffer(bytes: document))
    }
}

private let refusals = Dictionary(
    uniqueKeysWithValues: ErrorCode.allCases.map { code in
        (code, ServerMetric.refusals.counter(code.rawValue))
    })
