import CarillonWire
import Synchronization

/// Decides for a client whether its server sent a response, and remembers which servers name themselves in
/// `Carillon-Server`.
///
/// A response without content is the server's only if it names the server. A server of an earlier version never does. Before
/// the first response that shows it, `GET /v1/server` is asked: its response has content in every version. If the server named
/// itself within seven days, in this run or an earlier one, only another server, with another id, can do without.
final class ServerRecognition: Sendable {
    /// Whether the server at a base address names itself; no entry before a response in this run shows it.
    private let namesItself = Mutex<[String: Bool]>([:])
    /// What this run and earlier ones learned, with its age; nil if a name counts until the run ends.
    private let memory: NamedServers?

    init(memory: NamedServers? = nil) { self.memory = memory }

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
}
