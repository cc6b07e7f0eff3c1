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
struct Answer: Sendable {
    var status: HTTPResponseStatus
    var headers: HTTPHeaders
    var body = ByteBuffer()
}

extension Answer {
    /// A refusal as a problem document, counted under its code.
    init(_ refusal: Refusal) {
        refusals[refusal.code]?.increment()
        // The document is our own type, of texts and a number: encoding it cannot fail.
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let document = (try? encoder.encode(ProblemDocument(refusal))) ?? Data()
        var headers: HTTPHeaders = ["content-type": ProblemDocument.mediaType, "cache-control": "no-store"]
        if let seconds = refusal.retryAfterSeconds { headers.add(name: "retry-after", value: String(seconds)) }
        switch refusal.code {
        case .credentialMissing, .credentialInvalid: headers.add(name: "www-authenticate", value: "Bearer")
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
        (code, Counter(label: "carillon_refusals", dimensions: [("code", code.rawValue)]))
    })
