import CarillonWire
import Synchronization

/// Decides for a client whether its server sent a response, and records which servers name themselves in `Carillon-Server`.
///
/// A response without content is the server's only if it names the server. A server of an earlier version never does. Before the
/// first response that shows this, the client sends `GET /v1/server`: its response has content in every version. If the server
/// named itself within seven days, in this run or an earlier one, nameless responses are accepted only from a server with another
/// id.
final class ServerRecognition: Sendable {
    /// Whether the server at a base address names itself; no entry before a response in this run shows it.
    private let namesItself = Mutex<[String: Bool]>([:])
    /// The names that this run and earlier ones recorded, with their age; nil if a name counts until the run ends.
    private let memory: NamedServers?

    init(memory: NamedServers? = nil) { self.memory = memory }

    /// Returns the verdict on a response; never ``ServerResponse/Verdict/unnamed``.
    ///
    /// - Parameters:
    ///   - decide: Returns the verdict. `isNameless` is true for a server that does not name itself.
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
            // With a memory, the request is repeated: another server can have the address by now.
            guard known == nil || memory != nil, let description = await describe() else { return .foreign }
            let id: String?
            switch description.verdict(reading: { $0.json(200, as: ServerBody.self) }) {
            case .unnamed, .foreign: return .foreign
            case .success(let body): id = body.server
            // A server without a route for the address refuses.
            case .refused: id = nil
            }
            guard !description.isNamed else {
                learned(description, base)
                return .foreign
            }
            if let former = memory?.id(of: base) {
                // A proxy can remove the header. It does not change the id.
                guard let id, id != former else { return .foreign }
                memory?.remove(base)
            } else if known == true {
                // The memory has no age of a name that could not be stored.
                guard memory?.hasExpired(base) == true else { return .foreign }
            }
            namesItself.withLock { $0[base] = false }
            return decide(true)
        }
    }

    /// Records that a response named the server.
    private func learned(_ response: ServerResponse, _ base: String) {
        namesItself.withLock { $0[base] = true }
        if let id = response.server { memory?.named(base, id) }
    }
}
