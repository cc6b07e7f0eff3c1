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
    var failures: FailureNote?
    let identity: @Sendable () -> DeviceIdentity?

    enum Answer: Sendable {
        case done(JSONValue)
        case refused(ServiceError)
        /// It may be asked again later.
        case later(hint: Duration?)
    }

    static let path = "/v1/services"
    private static let answerLimit = 1 << 20

    /// - Returns: Nil where there is nothing of the kind, or no answer now.
    func bytes(_ path: String) async -> Data? {
        guard let identity = identity(), let address = WebAddress(http: base + path) else { return nil }
        let question = WebQuestion(
            method: .get, address: address, bearer: identity.credential, answerLimit: Self.answerLimit)
        guard let answer = try? await transport.ask(question), answer.status == 200 else { return nil }
        return answer.body
    }

    func ask(_ method: WebQuestion.Method, _ path: String, _ body: [UInt8]? = nil) async -> Answer {
        guard let identity = identity() else { return .later(hint: nil) }
        // An answer that may be long would hold up what comes on the connection.
        if method != .get, path.hasPrefix(Self.path), let answer = await asks.ask(method.rawValue, path, body ?? []) {
            return Self.answer(answer.status, answer.body, wait: nil)
        }
        guard let address = WebAddress(http: base + path) else {
            return .refused(ServiceError(.serverUnavailable, "\"\(base + path)\" is not a valid URL."))
        }
        do throws(TransportFault) {
            let answer = try await transport.ask(
                WebQuestion(
                    method: method, address: address, bearer: identity.credential, json: body.map { Data($0) },
                    answerLimit: Self.answerLimit))
            let known = Self.answer(answer.status, Array(answer.body), wait: answer.wait)
            if case .later = known {
                failures?.failed(
                    at: address, by: .http,
                    PushError(.serverUnavailable, "The server answered with status \(answer.status)."))
            } else {
                failures?.answered(at: address)
            }
            return known
        } catch {
            failures?.failed(at: address, by: .http, ConnectionFailure(error, at: address.origin).error())
            return .later(hint: nil)
        }
    }

    /// Waits before another attempt, and reports the failure of the last one.
    func wait(_ schedule: inout ClientReconnectSchedule, hint: Duration?) async throws {
        let chance = Double.random(in: 0..<1)
        let wait = hint.map { schedule.delay(after: $0, random: chance) } ?? schedule.failed(random: chance)
        if let server = WebAddress(http: base) { failures?.willRetry(at: server, after: wait) }
        try await Task.sleep(for: wait)
    }

    private static func answer(_ status: Int, _ body: [UInt8], wait: Duration?) -> Answer {
        if (200..<300).contains(status) { return .done(JSONValue(parsing: body) ?? .null) }
        if [408, 425, 429].contains(status) || status >= 500 {
            return .later(hint: wait)
        }
        let problem = try? JSONDecoder().decode(ProblemDocument.self, from: Data(body))
        return .refused(
            ServiceError(
                problem.map { .init($0.code) } ?? .serverUnavailable,
                problem?.detail ?? "The server answered with status \(status)."))
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
            case .later(let hint): try await wait(&schedule, hint: hint)
            }
        }
    }
}
