import CarillonCore
import CarillonWire
import HTTPTypes
import Hummingbird
import Logging
import Metrics
import NIOCore
import NIOHTTP1
import NIOHTTPTypesHTTP1

// Everything that was refused or went wrong becomes an answer of HTTP here, and nowhere else: a problem document (RFC 9457).

extension HTTPAnswer {
    /// A refusal as a problem document, counted under its code.
    init(_ refusal: Refusal) {
        refusal.count()
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
            body: ByteBuffer(bytes: ProblemDocument(refusal).bytes))
    }
}

private let refusals = Dictionary(
    uniqueKeysWithValues: ErrorCode.allCases.map { code in
        (code, ServerMetric.refusals.counter(code.rawValue))
    })

extension Response {
    init(refusal: Refusal) {
        let answer = HTTPAnswer(refusal)
        self.init(
            status: .init(code: Int(answer.status.code)), headers: HTTPFields(answer.headers, splitCookie: false),
            body: ResponseBody(byteBuffer: answer.body))
    }
}

/// Turns everything that a route throws into a problem document: the one place where faults meet HTTP. A fault of a home passes, because
/// the request runs at another home then.
struct ProblemMiddleware: RouterMiddleware {
    let addresses: [RoutedPath]

    @concurrent func handle(
        _ request: Request, context: RouteContext,
        next: @concurrent (Request, RouteContext) async throws -> Response
    ) async throws -> Response {
        do {
            return try await next(request, context)
        } catch let fault as HomeFault {
            throw fault
        } catch let error as any HTTPResponseError where error.status == .notFound {
            return notFound(request)
        } catch let error as any HTTPResponseError {
            return Response(refusal: Refusal(status: error.status))
        } catch {
            return Response(refusal: Refusal(error, logger: context.logger))
        }
    }

    private func notFound(_ request: Request) -> Response {
        let path = request.uri.path.split(separator: "/")
        guard let address = addresses.first(where: { $0.matches(path) }) else {
            return Response(
                refusal: Refusal(.notFound, "The URL does not exist; see the documentation of the HTTP API."))
        }
        var response = Response(
            refusal: Refusal(.methodNotAllowed, "This URL supports the methods \(address.methods)."))
        response.headers[.allow] = address.methods
        return response
    }
}

extension Refusal {
    /// Counts the refusal under its code.
    func count() { refusals[code]?.increment() }

    /// What the peer is told of anything that was thrown. What it should not be told is logged.
    init(_ error: any Error, logger: Logger) {
        switch error {
        case let refusal as Refusal:
            self = refusal
        case let fault as StoreFault:
            logger.error("cannot use the store; refusing a request", metadata: ["reason": "\(fault.message)"])
            self.init(fault)
        case let fault as HomeFault:
            logger.warning("a home did not answer; refusing a request", metadata: ["reason": "\(fault)"])
            self.init(fault)
        case is CancellationError:
            self.init(.stopping, "The server is stopping; retry.", retryAfterSeconds: 2)
        default:
            logger.error("unexpected error; refusing a request", metadata: ["reason": "\(type(of: error))"])
            self.init(
                .internalError, "The server had an unexpected error and logged it; retry, or ask the operator.",
                retryAfterSeconds: 5)
        }
    }

    init(_ fault: StoreFault) {
        switch fault.kind {
        case .full:
            self.init(.storageFull, "The server's disk is full; nothing was accepted. Retry later.", retryAfterSeconds: 10)
        case .unreachable: self.init(HomeFault.unreachable)
        case .outcomeUnknown: self.init(HomeFault.outcomeUnknown)
        case .unavailable, .damaged, .fenced:
            self.init(
                .storageUnavailable, "The server cannot use its store; nothing was accepted. Retry later.",
                retryAfterSeconds: 5)
        }
    }

    init(_ fault: HomeFault) {
        switch fault {
        case .moved, .unreachable:
            self.init(
                .storageUnavailable, "The server cannot reach the home of the request; nothing was accepted. Retry.",
                retryAfterSeconds: 1)
        case .outcomeUnknown:
            self.init(
                .storageUnavailable,
                "The home of the request did not answer, but may have accepted the request; check the result before you retry.",
                retryAfterSeconds: 1)
        }
    }

    init(status: HTTPResponse.Status) {
        switch status.code {
        case 413: self.init(.bodyTooLarge, "The body is larger than this URL accepts.")
        case 400..<500: self.init(.requestInvalid, "The request is not valid.")
        default: self.init(.internalError, "The server had an internal error; retry.", retryAfterSeconds: 5)
        }
    }
}
