import CarillonCore
import CarillonWire
import HTTPTypes
import Hummingbird
import Logging

/// The protocol of BlackBerry's application servers: `/GNP1.0?method=checkToken|notify`.
///
/// The HTTP status is always 200. `X-Good-GNP-Code` contains the result.
struct GNPRoutes: Sendable {
    let domain: HomeDomain

    /// The protocol has no time to live. A message waits for a day.
    private static let ttlSeconds: Int64 = 86_400

    func add(to routes: Routes) {
        for method in [HTTPRequest.Method.get, .post, .put, .delete, .patch] {
            routes.on(method, "/GNP1.0", query: ["method"], answer)
        }
    }

    @Sendable private func answer(_ request: Request, _ context: RouteContext) async throws -> Response {
        do {
            try await perform(request)
            return Self.response(.ok)
        } catch let fault as HomeFault {
            throw fault
        } catch {
            return Self.response(to: error, logger: context.logger)
        }
    }

    static func response(to error: any Error, logger: Logger) -> Response {
        if let code = error as? GNPCode { return response(code) }
        let refusal = Refusal(error, logger: logger)
        return response(GNPCode(refusal.code), retryAfterSeconds: refusal.retryAfterSeconds)
    }

    private func perform(_ request: Request) async throws {
        switch request.uri.queryParameters["method"] {
        case "checkToken":
            guard request.method == .get else { throw GNPCode.wrongHTTPMethod }
            _ = try await channel(request)
        case "notify":
            guard request.method == .post else { throw GNPCode.wrongHTTPMethod }
            try await notify(request, channel: try await channel(request))
        default:
            throw GNPCode.unknownMethod
        }
    }

    private func channel(_ request: Request) async throws -> PushChannel {
        guard let token = request.headers[.gnpToken] else { throw GNPCode.missingToken }
        return try await domain.publisher.channel(of: token)
    }

    private func notify(_ request: Request, channel: PushChannel) async throws {
        let body = try await request.bytes(upTo: Limits.messageBodyBytes)
        guard String(validating: body, as: UTF8.self) != nil else { throw GNPCode.notText }
        let coding = body.isEmpty ? nil : ContentCoding(.identity)
        let message = PublishRequest(body: body, coding: coding, ttl: Self.ttlSeconds)
        _ = try await domain.publisher.publish(message, to: channel)
    }

    private static func response(_ code: GNPCode, retryAfterSeconds: Int? = nil) -> Response {
        var response = Response(status: .ok, text: [], type: "text/plain")
        response.headers[.gnpCode] = code.text
        if let retryAfterSeconds { response.headers[.retryAfter] = String(retryAfterSeconds) }
        return response
    }
}

/// The values of `X-Good-GNP-Code`. 100 and 402 are BlackBerry's, the others are Carillon's.
struct GNPCode: Error, Equatable, Sendable {
    var number: Int
    var name: String

    var text: String { "\(number) \(name)" }

    private init(_ number: Int, _ name: String) {
        self.number = number
        self.name = name
    }

    static let ok = GNPCode(100, "OK")
    static let missingToken = GNPCode(401, "Missing Token")
    static let invalidToken = GNPCode(402, "Invalid Token")
    static let notAllowed = GNPCode(403, "Sender Not Allowed")
    static let unknownMethod = GNPCode(404, "Unknown Method")
    static let wrongHTTPMethod = GNPCode(405, "Wrong HTTP Method")
    static let bodyTooLarge = GNPCode(413, "Body Too Large")
    static let notText = GNPCode(415, "Body Is Not UTF-8 Text")
    static let inboxFull = GNPCode(429, "Inbox Full")
    static let rateLimited = GNPCode(429, "Rate Limited")
    static let internalError = GNPCode(500, "Internal Error")
    static let serverStopping = GNPCode(503, "Server Stopping")
    static let storageUnavailable = GNPCode(507, "Storage Unavailable")

    init(_ code: ErrorCode) {
        self =
            switch code {
            case .tokenUnknown, .tokenGone: .invalidToken
            case .vapidMissing, .vapidInvalid: .notAllowed
            case .bodyTooLarge: .bodyTooLarge
            case .inboxFull: .inboxFull
            case .rateLimited: .rateLimited
            case .stopping, .overloaded: .serverStopping
            case .storageFull, .storageUnavailable: .storageUnavailable
            default: .internalError
            }
    }
}
