import CarillonWire
import Synchronization

/// What became of one request to a server.
enum ServerAnswer<Value: Sendable>: Sendable {
    case success(Value)
    case refused(ServerRefusal, wait: Duration?)
    /// Another program sent the response. The request is sent again later.
    case foreign(PushError, wait: Duration?)
}

/// Decides for a client whether its server sent a response, and remembers which servers name themselves in
/// `Carillon-Server`.
///
/// A response without content is the server's only if it names the server. A server of an earlier version never does. Before
/// the first response that shows it, `GET /v1/server` is asked: its response has content in every version. If the server named
/// itself within seven days, in this run or an earlier one, only another server, with another id, can do without.
final class ServerRecognition: Sendable {
    /// Whether the server at a base address names itself; no entry before a response in this run shows it.
    private let namesItself = Mutex<[String: Bool]>([:])
    /// The longest wait that a response of another program can ask for.
    private let longestForeignWait: Duration
    /// What this run and earlier ones learned, with its age; nil if a name counts until the run ends.
    private let memory: NamedServers?

    init(_ backOff: PushClient.BackOff = .init(), memory: NamedServers? = nil) {
        longestForeignWait = backOff.maximum
        self.memory = memory
    }

    /// Sends one request and decides about its response.
    ///
    /// - Parameters:
    ///   - base: The address of the server.
    ///   - read: Returns the value of a success with its documented form; nil for any other response.
    /// - Throws: ``TransportFault`` when no response comes.
    func ask<Value: Sendable>(
        _ question: WebQuestion, of base: String, over transport: any ClientTransport,
        reading read: @Sendable (ServerResponse) -> Value?
    ) async throws(TransportFault) -> ServerAnswer<Value> {
        let answer = try await transport.ask(question)
        let verdict = await verdict(on: answer.response, from: base) { isNameless in
            answer.response.verdict(isNameless: isNameless, reading: read)
        } describe: {
            await Self.describe(base, over: transport)
        }
        return self.answer(verdict, question.address, answer.status, wait: answer.wait)
    }

    /// The same for a request whose success is 204.
    func askForNoContent(
        _ question: WebQuestion, of base: String, over transport: any ClientTransport
    ) async throws(TransportFault) -> ServerAnswer<Void> {
        let answer = try await transport.ask(question)
        let verdict = await verdict(on: answer.response, from: base) { isNameless in
            answer.response.verdictOnNoContent(isNameless: isNameless)
        } describe: {
            await Self.describe(base, over: transport)
        }
        return self.answer(verdict, question.address, answer.status, wait: answer.wait)
    }

    /// Returns the wait that a response of another program asks for, up to the longest wait of the back-off; nil for a status
    /// other than 429 and 503.
    func foreignWait(_ status: Int, _ wait: Duration?) -> Duration? {
        [429, 503].contains(status) ? wait.map { min($0, longestForeignWait) } : nil
    }

    /// Returns the verdict on a response; never ``ServerResponse/Verdict/unnamed``.
    ///
    /// - Parameters:
    ///   - decide: Returns the verdict, for a server that does not name itself, or for any other.
    ///   - describe: Returns the response of the same server to `GET /v1/server`; nil if there is none.
    func verdict<Value: Sendable>(
        on response: ServerResponse, from base: String, _ decide: (_ isNameless: Bool) -> ServerResponse.Verdict<Value>,
        describe: () async -> ServerResponse?
    ) async -> ServerResponse.Verdict<Value> {
        let known = namesItself.withLock { $0[base] }
        let verdict = decide(known == false)
        switch verdict {
        case .success, .refused:
            if response.isNamed { learned(response, base) }
            return verdict
        case .foreign:
            return .foreign
        case .unnamed:
            // With a memory, the server is asked again: another server can have the address by now.
            guard known == nil || memory != nil, let description = await describe() else { return .foreign }
            let id: String?
            switch description.verdict(reading: { $0.json(200, as: ServerBody.self) }) {
            case .unnamed, .foreign: return .foreign
            case .success(let body): id = body.server
            // A server that does not know the address refuses.
            case .refused: id = nil
            }
            guard !description.isNamed else {
                learned(description, base)
                return .foreign
            }
            if let former = memory?.id(of: base) {
                // A proxy can remove the header. It does not change the id.
                guard let id, id != former else { return .foreign }
                memory?.forget(base)
            } else if known == true {
                // The memory has no age of a name that could not be stored.
                guard memory?.hasExpired(base) == true else { return .foreign }
            }
            namesItself.withLock { $0[base] = false }
            return decide(true)
        }
    }

    /// A response named the server.
    private func learned(_ response: ServerResponse, _ base: String) {
        namesItself.withLock { $0[base] = true }
        if let id = response.server { memory?.named(base, id) }
    }

    private static func describe(_ base: String, over transport: any ClientTransport) async -> ServerResponse? {
        guard let address = WebAddress(http: base + "/v1/server") else { return nil }
        let question = WebQuestion(method: .get, address: address, answerLimit: Limits.apiBodyBytes)
        return try? await transport.ask(question).response
    }

    private func answer<Value: Sendable>(
        _ verdict: ServerResponse.Verdict<Value>, _ address: WebAddress, _ status: Int, wait: Duration?
    ) -> ServerAnswer<Value> {
        switch verdict {
        case .success(let value): .success(value)
        case .refused(let refusal): .refused(refusal, wait: wait)
        case .unnamed, .foreign: .foreign(Self.foreign(address, status), wait: foreignWait(status, wait))
        }
    }

    /// Returns the error of a response that is not the server's. It names the address without its query.
    static func foreign(_ address: WebAddress, _ status: Int) -> PushError {
        let place = address.text.prefix { $0 != "?" }
        return PushError(
            .serverUnavailable,
            "The response of \(place) with status \(status) is not of a Carillon server; a proxy, a login page or another program sent it.",
            cause: ConnectionFailure(ConnectionReason.foreign(status: status), at: address.origin))
    }
}
