import CarillonBasics
import CarillonWire

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The server's side of services, as this device asks it.
struct ServiceServer: Sendable {
    /// Without a slash at its end.
    let base: String
    let transport: any ClientTransport
    let backOff: PushClient.BackOff
    let asks: SocketAsks
    var recognition = ServerRecognition()
    var failures = FailureNote()
    let identity: @Sendable () -> DeviceIdentity?
    /// Whether a request whose credential the server refuses can succeed later, because the registration is repeated.
    var repeatsRegistration: @Sendable (_ credential: String) -> Bool = { _ in false }

    enum Answer: Sendable {
        case done(JSONValue)
        case refused(ServiceError)
        /// It may be asked again later.
        case later(hint: Duration?)
    }

    static let path = "/v1/services"
    private static let answerLimit = 1 << 20

    /// Returns a PNG image; nil if there is none, or no answer of the server now.
    func image(_ path: String) async -> Data? {
        guard let identity = identity(), let address = WebAddress(http: base + path) else { return nil }
        let question = WebQuestion(
            method: .get, address: address, bearer: identity.credential, answerLimit: Self.answerLimit)
        let answer: ServerAnswer<Data>? = try? await recognition.ask(question, of: base, over: transport) {
            $0.status == 200 && $0.body.starts(with: Self.imageStart) ? $0.body : nil
        }
        switch answer {
        case .success(let image)?:
            failures.answered(at: address)
            return image
        case .refused?: failures.answered(at: address)
        case .foreign(let error, _)?: failures.failedOnce(at: address, error)
        case nil: break
        }
        return nil
    }

    /// The first bytes of a PNG image.
    private static let imageStart: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]

    func ask(_ method: WebQuestion.Method, _ path: String, _ body: [UInt8]? = nil) async -> Answer {
        guard let identity = identity() else { return .later(hint: nil) }
        // An answer that may be long would hold up what comes on the connection.
        if method != .get, path.hasPrefix(Self.path), let answer = await asks.ask(method.rawValue, path, body ?? []) {
            return Self.answer(answer.status, answer.body)
        }
        guard let address = WebAddress(http: base + path) else {
            return .refused(ServiceError(.serverUnavailable, "\"\(base + path)\" is not a valid URL."))
        }
        let question = WebQuestion(
            method: method, address: address, bearer: identity.credential, json: body.map { Data($0) },
            answerLimit: Self.answerLimit)
        do throws(TransportFault) {
            guard let member = Self.member(of: method, path) else {
                let answer = try await recognition.askForNoContent(question, of: base, over: transport)
                return taken(answer, to: question) { .null }
            }
            let answer = try await recognition.ask(question, of: base, over: transport) { response -> JSONValue? in
                guard let json = JSONValue(parsing: Array(response.body)), json[member] != nil else { return nil }
                return json
            }
            return taken(answer, to: question) { $0 }
        } catch {
            failures.failed(at: address, by: .http, ConnectionFailure(error, at: address.origin).error())
            return .later(hint: nil)
        }
    }

    /// Waits before another attempt, at most until a moment, and reports the failure of the last one.
    func wait(_ schedule: inout ClientReconnectSchedule, hint: Duration?, until moment: Date = .distantFuture) async throws {
        let delay = schedule.failed(hint: hint, random: .random(in: 0..<1))
        let wait = min(delay, .seconds(max(0, moment.timeIntervalSinceNow)))
        if let server = WebAddress(http: base) { failures.willRetry(at: server, after: wait) }
        try await Task.sleep(for: wait)
    }

    /// Returns the name of a member that each successful response has; nil if a success is 204.
    private static func member(of method: WebQuestion.Method, _ path: String) -> String? {
        switch (method, path.prefix { $0 != "?" }) {
        case (.get, _): "providers"
        case (.post, "/v1/services/requests"): "expiresAt"
        case (.delete, "/v1/services/requests"): "cancelled"
        default: nil
        }
    }

    private func taken<Value: Sendable>(
        _ answer: ServerAnswer<Value>, to question: WebQuestion, _ json: (Value) -> JSONValue
    ) -> Answer {
        let address = question.address
        switch answer {
        case .success(let value):
            failures.answered(at: address)
            return .done(json(value))
        case .refused(let refusal, let wait):
            if refusal.code == .credentialInvalid, let credential = question.bearer, repeatsRegistration(credential) {
                failures.failed(
                    at: address, by: .http,
                    PushError(.serverUnavailable, "The server answered with status \(refusal.status)."))
                return .later(hint: wait)
            }
            if refusal.isTemporary {
                failures.failed(
                    at: address, by: .http,
                    PushError(.serverUnavailable, "The server answered with status \(refusal.status)."))
            } else {
                failures.answered(at: address)
            }
            return Self.refused(refusal, wait)
        case .foreign(let error, let wait):
            failures.failed(at: address, by: .http, error)
            return .later(hint: wait)
        }
    }

    /// Takes an answer of the live connection, which only the server can have sent.
    private static func answer(_ status: Int, _ body: [UInt8]) -> Answer {
        if (200..<300).contains(status) { return .done(JSONValue(parsing: body) ?? .null) }
        let problem = try? JSONDecoder().decode(ProblemDocument.self, from: Data(body))
        return refused(ServerRefusal(status: status, problem: problem), nil)
    }

    private static func refused(_ refusal: ServerRefusal, _ wait: Duration?) -> Answer {
        if refusal.isTemporary { return .later(hint: wait) }
        return .refused(
            ServiceError(refusal.problem.map { .init($0.code) } ?? .serverUnavailable, refusal.detail))
    }

    /// Asks until it is answered, with longer and longer waits.
    ///
    /// - Throws: ``ServiceError`` of what is refused, with ``ServiceError/Code/deadlineExceeded`` when the moment came; and
    ///   `CancellationError`.
    func persist(
        until moment: Date, _ method: WebQuestion.Method, _ path: String, _ body: [UInt8]? = nil
    ) async throws -> JSONValue {
        var schedule = ClientReconnectSchedule(backOff)
        while true {
            try Task.checkCancellation()
            guard Date.now < moment else {
                throw ServiceError(.deadlineExceeded, "The server could not be reached in time.")
            }
            switch await ask(method, path, body) {
            case .done(let answer): return answer
            case .refused(let error): throw error
            case .later(let hint): try await wait(&schedule, hint: hint, until: moment)
            }
        }
    }
}
