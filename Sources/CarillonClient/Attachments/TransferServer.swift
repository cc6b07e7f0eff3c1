import CarillonWire
import Logging

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Where attachments are kept: asked again and again where it is away, as whoever this device is.
struct TransferServer: Sendable {
    /// Without a slash at its end.
    let base: String
    let transport: any FileTransport
    let backOff: PushClient.BackOff
    let recognition: ServerRecognition
    let failures: FailureNote
    /// Nil if the text is not an address.
    private let server: WebAddress?
    /// Nil while it is not registered.
    let bearer: @Sendable () -> String?
    /// Whether a request whose credential the server refuses can succeed later, because the registration is repeated.
    let repeatsRegistration: @Sendable (_ credential: String) -> Bool

    init(
        base: String, transport: any FileTransport, backOff: PushClient.BackOff, logger: Logger,
        recognition: ServerRecognition? = nil, failures: FailureNote? = nil,
        bearer: @escaping @Sendable () -> String?,
        repeatsRegistration: @escaping @Sendable (_ credential: String) -> Bool = { _ in false }
    ) {
        self.base = base.hasSuffix("/") ? String(base.dropLast()) : base
        self.transport = transport
        self.backOff = backOff
        self.recognition = recognition ?? ServerRecognition(backOff)
        self.failures = failures ?? FailureNote(logger: logger)
        server = WebAddress(http: base)
        self.bearer = bearer
        self.repeatsRegistration = repeatsRegistration
    }

    /// What became of one question.
    enum Outcome<Value: Sendable> {
        case success(Value)
        case refused(ServerRefusal)
        /// It may be asked again later.
        case failed(hint: Duration?)
    }

    /// Asks once.
    ///
    /// - Parameters:
    ///   - isFile: Whether the body of a response is what `received` takes.
    ///   - read: Returns the value of a success with its documented form; nil for any other response.
    /// - Throws: ``PushError`` of what is received, and `CancellationError`.
    func ask<Value: Sendable>(
        _ method: String, _ path: String, _ headers: [(name: String, value: String)] = [],
        body: (file: DiskFile, range: Range<Int64>)? = nil, sent: @escaping @Sendable (Int64) -> Void = { _ in },
        isFile: @escaping @Sendable (FileAnswer) -> Bool = { _ in false },
        received: @escaping @Sendable (FileAnswer, Data) async throws(PushError) -> Void = { _, _ in },
        reading read: (FileAnswer) -> Value?
    ) async throws -> Outcome<Value> {
        guard let bearer = bearer() else { return .failed(hint: nil) }
        var question = FileQuestion(
            method: method, address: try address(path), bearer: bearer, headers: headers, body: body)
        question.isFile = isFile
        return try await exchange(question, sent, received) { answer, isNameless in
            answer.response(isHead: method == "HEAD").verdict(isNameless: isNameless) { _ in read(answer) }
        }
    }

    /// Has the server remove an attachment, or what was uploaded of it.
    func remove(_ path: String) async throws -> Outcome<Void> {
        guard let bearer = bearer() else { return .failed(hint: nil) }
        let question = FileQuestion(method: "DELETE", address: try address(path), bearer: bearer)
        return try await exchange(question, { _ in }, { _, _ in }) { answer, isNameless in
            answer.response(isHead: false).verdictOnNoContent(isNameless: isNameless)
        }
    }

    private func address(_ path: String) throws(PushError) -> WebAddress {
        guard let address = WebAddress(http: base + path) else {
            throw PushError(.protocolViolated, "The server gave a place that is no address.")
        }
        return address
    }

    private func exchange<Value: Sendable>(
        _ question: FileQuestion, _ sent: @escaping @Sendable (Int64) -> Void,
        _ received: @escaping @Sendable (FileAnswer, Data) async throws(PushError) -> Void,
        _ decide: (FileAnswer, _ isNameless: Bool) -> ServerResponse.Verdict<Value>
    ) async throws -> Outcome<Value> {
        do {
            let answer = try await transport.exchange(question, sent: sent, received: received)
            let response = answer.response(isHead: question.method == "HEAD")
            let verdict = await recognition.verdict(on: response, from: base) { isNameless in
                decide(answer, isNameless)
            } describe: {
                await describe(question.bearer)
            }
            switch verdict {
            case .success(let value):
                failures.answered(at: question.address)
                return .success(value)
            case .refused(let refusal):
                let isTemporary =
                    refusal.isTemporary || refusal.code == .credentialInvalid && repeatsRegistration(question.bearer)
                guard isTemporary else {
                    failures.answered(at: question.address)
                    return .refused(refusal)
                }
                failures.failed(
                    at: question.address, by: .http,
                    PushError(
                        .serverUnavailable, "The server answered an attachment's request with status \(answer.status)."))
                return .failed(hint: answer.wait)
            case .unnamed, .foreign:
                failures.failed(
                    at: question.address, by: .http, ServerRecognition.foreign(question.address, answer.status))
                return .failed(hint: recognition.foreignWait(answer.status, answer.wait))
            }
        } catch let fault as TransportFault {
            try Task.checkCancellation()
            failures.failed(
                at: question.address, by: .http, ConnectionFailure(fault, at: question.address.origin).error())
            return .failed(hint: nil)
        }
    }

    /// Asks the server who it is.
    private func describe(_ bearer: String) async -> ServerResponse? {
        guard let address = WebAddress(http: base + "/v1/server") else { return nil }
        let question = FileQuestion(method: "GET", address: address, bearer: bearer)
        let answer = try? await transport.exchange(question, sent: { _ in }, received: { _, _ in })
        return answer?.response(isHead: false)
    }

    /// What one step of a transfer came to.
    enum Step<Value> {
        case done(Value)
        /// The next is taken at once.
        case next(hasMoved: Bool)
        /// It is taken again later; sooner where something moved meanwhile.
        case later(hint: Duration?, hasMoved: Bool)
    }

    /// Takes steps until they come to something.
    func persist<Value>(_ step: () async throws -> Step<Value>) async throws -> Value {
        var schedule = ClientReconnectSchedule(backOff)
        while true {
            try Task.checkCancellation()
            switch try await step() {
            case .done(let value): return value
            case .next(let hasMoved):
                if hasMoved { schedule.succeeded() }
            case .later(let hint, let hasMoved):
                if hasMoved { schedule.succeeded() }
                let wait = schedule.failed(hint: hint, random: .random(in: 0..<1))
                if let server { failures.willRetry(at: server, after: wait) }
                try await Task.sleep(for: wait)
            }
        }
    }

    static func refused(_ refusal: ServerRefusal) -> PushError {
        PushError(.attachmentRefused, refusal.detail, serverCode: refusal.problem?.code)
    }
}
