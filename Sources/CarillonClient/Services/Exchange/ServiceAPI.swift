import CarillonBasics
import CarillonWire

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The server's API for services, with the credential of this device.
struct ServiceAPI: Sendable {
    let api: ServerAPI
    let requester: SocketRequester
    let identity: @Sendable () -> DeviceIdentity?

    enum Answer: Sendable {
        case done(JSONValue)
        case refused(ServiceError)
        /// The request can be sent again later.
        case later(hint: Duration?)
    }

    static let path = "/v1/services"
    private static let answerLimit = 1 << 20

    /// Returns a PNG image. Returns nil if the service has no image, or if the server does not answer now.
    func image(_ path: String) async -> Data? {
        guard let identity = identity(),
            let request = api.request(.get, path, bearer: identity.credential, answerLimit: Self.answerLimit)
        else { return nil }
        let form = SuccessForm<Data>.content { $0.status == 200 && $0.body.starts(with: Self.imageStart) ? $0.body : nil }
        switch await api.send(request, expecting: form) {
        case .success(let image):
            api.failures.answered(at: request.address)
            return image
        case .refused: api.failures.answered(at: request.address)
        case .foreign(let error, _): api.failures.failedOnce(at: request.address, error)
        case .unreachable: break
        }
        return nil
    }

    /// The first bytes of a PNG image.
    private static let imageStart: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]

    func send(_ method: WebRequest.Method, _ path: String, _ body: [UInt8]? = nil) async -> Answer {
        guard let identity = identity() else { return .later(hint: nil) }
        // A long response would delay other frames on the live connection.
        if method != .get, path.hasPrefix(Self.path), let answer = await requester.request(method.rawValue, path, body ?? [])
        {
            return Self.answer(answer.status, answer.body)
        }
        let json = body.map { Data($0) }
        guard
            let request = api.request(
                method, path, bearer: identity.credential, json: json, answerLimit: Self.answerLimit)
        else { return .refused(ServiceError(.serverUnavailable, "\"\(api.base + path)\" is not a valid URL.")) }
        guard let member = Self.member(of: method, path) else {
            switch await api.attempt(request, expecting: .noContent) {
            case .success: return .done(.null)
            case .refused(let refusal): return Self.refused(refusal)
            case .later(let hint): return .later(hint: hint)
            }
        }
        let form = SuccessForm<JSONValue>.content { response in
            guard let json = JSONValue(parsing: Array(response.body)), json[member] != nil else { return nil }
            return json
        }
        switch await api.attempt(request, expecting: form) {
        case .success(let json): return .done(json)
        case .refused(let refusal): return Self.refused(refusal)
        case .later(let hint): return .later(hint: hint)
        }
    }

    /// Returns the name of a member that each successful response has; nil if a success is 204.
    private static func member(of method: WebRequest.Method, _ path: String) -> String? {
        switch (method, path.prefix { $0 != "?" }) {
        case (.get, _): "providers"
        case (.post, "/v1/services/requests"): "expiresAt"
        case (.delete, "/v1/services/requests"): "cancelled"
        default: nil
        }
    }

    /// Reads an answer of the live connection, which only the server can have sent.
    private static func answer(_ status: Int, _ body: [UInt8]) -> Answer {
        if (200..<300).contains(status) { return .done(JSONValue(parsing: body) ?? .null) }
        let refusal = ServerRefusal(
            status: status, problem: try? JSONDecoder().decode(ProblemDocument.self, from: Data(body)))
        return refusal.isTemporary ? .later(hint: nil) : refused(refusal)
    }

    private static func refused(_ refusal: ServerRefusal) -> Answer {
        .refused(ServiceError(refusal.problem.map { .init($0.code) } ?? .serverUnavailable, refusal.detail))
    }

    /// Sends a request until the server answers it, with increasing waits.
    ///
    /// - Throws: ``ServiceError`` of a refusal, or with ``ServiceError/Code/deadlineExceeded`` at the moment; and
    ///   `CancellationError`.
    func persist(
        until moment: Date, _ method: WebRequest.Method, _ path: String, _ body: [UInt8]? = nil
    ) async throws -> JSONValue {
        var schedule = ClientReconnectSchedule(api.backOff)
        while true {
            try Task.checkCancellation()
            guard Date.now < moment else {
                throw ServiceError(.deadlineExceeded, "The server could not be reached in time.")
            }
            switch await send(method, path, body) {
            case .done(let answer): return answer
            case .refused(let error): throw error
            case .later(let hint): try await api.wait(&schedule, hint: hint, until: moment)
            }
        }
    }
}
