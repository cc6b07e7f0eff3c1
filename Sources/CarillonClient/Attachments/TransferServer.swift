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
    let failures: FailureNote
    /// Nil for an address that is none.
    private let server: WebAddress?
    /// Nil while it is not registered.
    let bearer: @Sendable () -> String?

    init(
        base: String, transport: any FileTransport, backOff: PushClient.BackOff, logger: Logger,
        failures: FailureNote? = nil, bearer: @escaping @Sendable () -> String?
    ) {
        self.base = base.hasSuffix("/") ? String(base.dropLast()) : base
        self.transport = transport
        self.backOff = backOff
        self.failures = failures ?? FailureNote(logger: logger)
        server = WebAddress(http: base)
        self.bearer = bearer
    }

    /// What became of one question.
    enum Outcome {
        case answered(FileAnswer)
        /// It may be asked again later.
        case failed(hint: Duration?)
    }

    /// - Throws: ``PushError`` of what is received, and `CancellationError`.
    func ask(
        _ method: String, _ path: String, _ headers: [(name: String, value: String)] = [],
        body: (file: DiskFile, range: Range<Int64>)? = nil, sent: @escaping @Sendable (Int64) -> Void = { _ in },
        received: @escaping @Sendable (FileAnswer, Data) async throws(PushError) -> Void = { _, _ in }
    ) async throws -> Outcome {
        guard let bearer = bearer() else { return .failed(hint: nil) }
        guard let address = WebAddress(http: base + path) else {
            throw PushError(.protocolViolated, "The server gave a place that is no address.")
        }
        do {
            let question = FileQuestion(method: method, address: address, bearer: bearer, headers: headers, body: body)
            let answer = try await transport.exchange(question, sent: sent, received: received)
            let isLater = [408, 425, 429].contains(answer.status) || answer.status >= 500
            guard isLater else {
                failures.answered(at: address)
                return .answered(answer)
            }
            failures.failed(
                at: address, by: .http,
                PushError(.serverUnavailable, "The server answered an attachment's request with status \(answer.status)."))
            return .failed(hint: answer.wait)
        } catch let fault as TransportFault {
            try Task.checkCancellation()
            failures.failed(at: address, by: .http, ConnectionFailure(fault, at: address.origin).error())
            return .failed(hint: nil)
        }
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
                let chance = Double.random(in: 0..<1)
                let wait = hint.map { schedule.delay(after: $0, random: chance) } ?? schedule.failed(random: chance)
                if let server { failures.willRetry(at: server, after: wait) }
                try await Task.sleep(for: wait)
            }
        }
    }

    static func refused(_ answer: FileAnswer) -> PushError {
        let problem = try? JSONDecoder().decode(ProblemDocument.self, from: answer.body)
        return PushError(
            .attachmentRefused, problem?.detail ?? "The server answered \(answer.status).", serverCode: problem?.code)
    }
}
