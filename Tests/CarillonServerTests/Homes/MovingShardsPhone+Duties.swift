import CarillonBasics
import CarillonWire
import NIOHTTP1
import Synchronization

/// The reports of a phone to the server.
extension ScenarioPhone {
    /// Whether the phone has sent all reports.
    var hasSaidAll: Bool {
        duties.withLock { $0.acknowledgements.isEmpty && $0.results.isEmpty && $0.requests.isEmpty }
    }

    /// Sends all reports of the phone.
    ///
    /// - Parameters:
    ///   - socket: Used for results of updates, if there is one.
    ///   - looks: Whether the phone polls for updates once a second, as a device must do without a socket and a stream.
    func report(by socket: ScenarioSocket? = nil, looks: Bool = false) async throws {
        try await sendAcknowledgements()
        try await sendResults(by: socket, looks: looks)
        try await answerRequests()
    }

    /// Reports until something ends. Faults are noted.
    func reportAgainAndAgain(by socket: ScenarioSocket? = nil, until isOver: () -> Bool) async {
        while !isOver() {
            do {
                try await report(by: socket)
                try await Task.sleep(for: .milliseconds(10))
            } catch {
                guard !record.isOver else { return }
                record.fault("\(name) cannot report: \(error)")
                try? await Task.sleep(for: .milliseconds(200))
            }
        }
    }

    private func sendAcknowledgements() async throws {
        let ids = duties.withLock { duties in
            defer { duties.acknowledgements = [] }
            return duties.acknowledgements
        }
        guard !ids.isEmpty else { return }
        log.acknowledge(ids, at: record.now())
        let results = ids.map { #"{"version":"\#($0)","result":"acknowledged"}"# }.joined(separator: ",")
        let request = ScenarioHTTP.Request(.POST, "/v1/inbox/results", key: credential, #"{"results":[\#(results)]}"#)
        _ = try await http.repeating(request, expecting: 204)
        log.confirm(ids, at: record.now())
    }

    // MARK: Results of updates

    func takeResults() -> [DoneUpdate] {
        duties.withLock { duties in
            let results = Array(duties.results.prefix(100))
            duties.results.removeFirst(results.count)
            return results
        }
    }

    func release(_ results: [DoneUpdate]) { duties.withLock { $0.results = results + $0.results } }

    private func sendResults(by socket: ScenarioSocket?, looks: Bool) async throws {
        let results = takeResults()
        guard !results.isEmpty || looks && record.now() - said.withLock(\.polledAt) > 1000 else { return }
        let members = Self.members(results)
        do {
            if let socket {
                guard try await poll(members, by: socket) else { return release(results) }
            } else {
                try await poll(#""max":0\#(members.isEmpty ? "" : ",")\#(members)"#)
            }
        } catch {
            release(results)
            throw error
        }
        log.finish(results.map(\.update), at: record.now())
    }

    static func members(_ results: [DoneUpdate]) -> String {
        results.isEmpty ? "" : #""results":[\#(results.map(\.json).joined(separator: ","))]"#
    }

    /// Returns the body of a poll.
    func pollBody(_ members: String) -> String {
        let position = said.withLock(\.position)
        let parts = [#""protocol":1"#, position.isEmpty ? "" : #""position":"\#(position)""#, members]
        return "{" + parts.filter { !$0.isEmpty }.joined(separator: ",") + "}"
    }

    func poll(_ members: String) async throws {
        let answer = try await http.repeating(
            .init(.POST, "/v1/inbox", key: credential, pollBody(members)), expecting: 200)
        took(answer.json)
    }

    /// - Returns: False if the request was refused for now, or the socket ended.
    private func poll(_ members: String, by socket: ScenarioSocket) async throws -> Bool {
        guard let answer = await socket.ask("POST", "/v1/inbox", pollBody(members)) else { return false }
        if answer.status == 503 || answer.status == 429 {
            record.count("refusals by socket")
            return false
        }
        guard answer.status == 200 else { throw Refused(status: answer.status, body: answer.body) }
        took(answer.body)
        return true
    }

    private struct Refused: Error {
        var status: Int
        var body: JSONValue?
    }

    /// Reads the answer to a poll, without its envelopes.
    func took(_ answer: JSONValue?) {
        if case .string(let position)? = answer?["position"] {
            said.withLock { said in
                said.position = position
                said.polledAt = record.now()
            }
        } else {
            record.fault("\(name) got no position: \(answer.map { "\($0)" } ?? "no JSON")")
        }
        if answer?["parametersRevision"] != .string("1") {
            record.fault("\(name) was told to send its parameters again: \(answer?["parametersRevision"] ?? .null)")
        }
        if case .array(let ignored)? = answer?["ignored"] {
            for result in ignored where result["why"] == .string("unknown") {
                record.fault("\(name) has a result of an update that the server does not know: \(result)")
            }
        }
    }

    // MARK: Requests of other phones

    func answerRequests() async throws {
        while let request = duties.withLock({ $0.requests.first }) {
            let content = String(decoding: JSONValue.object(ServiceWorld.content(body: [8]).members).bytes, as: UTF8.self)
            let path = "/v1/services/requests/\(request)"
            var statuses: [Int] = []
            for sent in [
                ScenarioHTTP.Request(.POST, path + "/received", key: credential),
                ScenarioHTTP.Request(.POST, path + "/reply", key: credential, content),
            ] {
                // A request that was taken back is unknown, or finished.
                statuses.append(try await http.repeating(sent, expecting: 204, 404, 409).status)
            }
            log.answered(request, with: statuses, at: record.now())
            duties.withLock { duties in
                if duties.requests.first == request { duties.requests.removeFirst() }
            }
        }
    }
}
