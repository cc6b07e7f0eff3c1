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
    let identity: @Sendable () -> DeviceIdentity?

    enum Answer: Sendable {
        case done(JSONValue)
        case refused(ServiceError)
        /// It may be asked again later.
        case later(hint: Duration?)
    }

    static let path = "/v1/services"
    private static let answerLimit = 1 << 20

    func ask(_ method: WebQuestion.Method, _ path: String, _ body: [UInt8]? = nil) async -> Answer {
        guard let identity = identity() else { return .later(hint: nil) }
        guard let address = WebAddress(http: base + path) else {
            return .refused(ServiceError(.serverUnavailable, "The server's address is none."))
        }
        do throws(TransportFault) {
            let answer = try await transport.ask(
                WebQuestion(
                    method: method, address: address, bearer: identity.credential, json: body.map { Data($0) },
                    answerLimit: Self.answerLimit))
            if (200..<300).contains(answer.status) { return .done(JSONValue(parsing: Array(answer.body)) ?? .null) }
            if [408, 425, 429].contains(answer.status) || answer.status >= 500 {
                let seconds = answer.retryAfter.flatMap { Int64($0) }
                return .later(hint: seconds.map { .seconds(max(0, min($0, 3600))) })
            }
            let problem = try? JSONDecoder().decode(ProblemDocument.self, from: answer.body)
            return .refused(
                ServiceError(
                    problem.map { .init($0.code) } ?? .serverUnavailable,
                    problem?.detail ?? "The server answered with status \(answer.status)."))
        } catch {
            return .later(hint: nil)
        }
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
            case .later(let hint):
                let chance = Double.random(in: 0..<1)
                try await Task.sleep(
                    for: hint.map { schedule.delay(after: $0, random: chance) } ?? schedule.failed(random: chance))
            }
        }
    }
}
