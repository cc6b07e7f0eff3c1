import CarillonBasics
import CarillonWire

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The HTTP API of one server. It sends requests, checks which program sent each response, and decides whether a request is sent
/// again.
struct ServerAPI: Sendable {
    /// The server's address, without a slash at its end.
    let base: String
    let transport: any WebTransport
    let backOff: PushClient.BackOff
    let recognition: ServerRecognition
    let failures: FailureNote
    /// Returns whether a request whose credential the server refuses can succeed later, because the registration is repeated.
    let repeatsRegistration: @Sendable (_ credential: String) -> Bool

    init(
        _ address: String, over transport: any WebTransport, backOff: PushClient.BackOff = .init(),
        recognition: ServerRecognition = ServerRecognition(), failures: FailureNote = FailureNote(),
        repeatsRegistration: @escaping @Sendable (_ credential: String) -> Bool = { _ in false }
    ) {
        base = Self.base(address)
        self.transport = transport
        self.backOff = backOff
        self.recognition = recognition
        self.failures = failures
        self.repeatsRegistration = repeatsRegistration
    }

    /// Returns an address without a slash at its end.
    static func base(_ address: String) -> String { address.hasSuffix("/") ? String(address.dropLast()) : address }

    /// Returns the API at another address.
    func at(_ address: String) -> ServerAPI {
        ServerAPI(
            address, over: transport, backOff: backOff, recognition: recognition, failures: failures,
            repeatsRegistration: repeatsRegistration)
    }

    // MARK: Answers

    /// Returns a request with a path below the server's address; nil if that is not a valid URL.
    func request(
        _ method: WebRequest.Method, _ path: String, bearer: String?, json: Data? = nil,
        answerLimit: Int = Limits.apiBodyBytes, patience: Duration = .zero
    ) -> WebRequest? {
        WebAddress(http: base + path).map { address in
            WebRequest(
                method: method, address: address, bearer: bearer, json: json, answerLimit: answerLimit, patience: patience)
        }
    }

    /// Sends one request, and evaluates its response.
    func send<Value>(_ request: WebRequest, expecting success: SuccessForm<Value>) async -> ServerAnswer<Value> {
        do throws(TransportFault) {
            return await decide(on: try await transport.send(request), from: request.address, expecting: success)
        } catch {
            return .unreachable(ConnectionFailure(error, at: request.address.origin))
        }
    }

    /// Evaluates a response.
    func decide<Value>(
        on answer: WebAnswer, from address: WebAddress, isHead: Bool = false, expecting success: SuccessForm<Value>
    ) async -> ServerAnswer<Value> {
        let verdict = await recognition.verdict(on: answer.response(isHead: isHead), from: base) { isNameless in
            success.verdict(answer, isHead, isNameless)
        } describe: {
            guard let request = request(.get, "/v1/server", bearer: nil) else { return nil }
            return try? await transport.send(request).response()
        }
        switch verdict {
        case .success(let value): return .success(value)
        case .refused(let refusal): return .refused(refusal, wait: answer.wait)
        case .unnamed, .foreign:
            // Another program can ask for a wait with 429 and 503 only, up to the longest wait of the back-off.
            let wait = [429, 503].contains(answer.status) ? answer.wait.map { min($0, backOff.maximum) } : nil
            return .foreign(Self.foreign(address, answer.status), wait: wait)
        }
    }

    /// Returns the error of a response of another program. It contains the address without its query.
    private static func foreign(_ address: WebAddress, _ status: Int) -> PushError {
        let place = address.text.prefix { $0 != "?" }
        return PushError(
            .serverUnavailable,
            "The response of \(place) with status \(status) is not of a Carillon server; a proxy, a login page or another program sent it.",
            cause: ConnectionFailure(ConnectionReason.foreign(status: status), at: address.origin))
    }

    // MARK: Repeated requests

    /// The result of one attempt of a request that is repeated.
    enum Outcome<Value: Sendable>: Sendable {
        case success(Value)
        /// The same request will be refused again.
        case refused(ServerRefusal)
        /// The request can be sent again later.
        case later(hint: Duration?)
    }

    /// Sends one request that is repeated, and records its failure or success.
    func attempt<Value>(_ request: WebRequest, expecting success: SuccessForm<Value>) async -> Outcome<Value> {
        outcome(await send(request, expecting: success), at: request.address, bearer: request.bearer)
    }

    /// Records an answer, and returns whether the request is sent again.
    func outcome<Value>(_ answer: ServerAnswer<Value>, at address: WebAddress, bearer: String?) -> Outcome<Value> {
        let failed: (error: PushError, wait: Duration?)
        switch answer {
        case .success(let value):
            failures.answered(at: address)
            return .success(value)
        case .refused(let refusal, let wait):
            guard refusal.isTemporary || refusal.code == .credentialInvalid && bearer.map(repeatsRegistration) == true else {
                failures.answered(at: address)
                return .refused(refusal)
            }
            failed = (PushError(.serverUnavailable, "The server answered with status \(refusal.status)."), wait)
        case .foreign(let error, let wait): failed = (error, wait)
        case .unreachable(let failure): failed = (failure.error(), nil)
        }
        failures.failed(at: address, by: .http, failed.error)
        return .later(hint: failed.wait)
    }

    /// Waits before another attempt, at most until a moment, and logs the failure of the last one.
    func wait(_ schedule: inout ClientReconnectSchedule, hint: Duration?, until moment: Date = .distantFuture) async throws {
        let delay = schedule.failed(hint: hint, random: .random(in: 0..<1))
        let wait = min(delay, .seconds(max(0, moment.timeIntervalSinceNow)))
        if let server = WebAddress(http: base) { failures.willRetry(at: server, after: wait) }
        try await Task.sleep(for: wait)
    }
}
