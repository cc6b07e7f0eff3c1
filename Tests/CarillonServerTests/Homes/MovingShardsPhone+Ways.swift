import AsyncHTTPClient
import CarillonBasics
import CarillonWire
import NIOCore
import NIOHTTP1
import Synchronization

/// The ways by which a phone gets its envelopes.
extension ScenarioPhone {
    private final class Flag: Sendable {
        private let value = Mutex(false)
        var isSet: Bool { value.withLock { $0 } }
        func set() { value.withLock { $0 = true } }
    }

    // MARK: Sockets

    func useSocket(until isOver: @escaping @Sendable () -> Bool) async throws {
        let lot = log.begin(.socket, at: record.now())
        let socket = try await ScenarioSocket.open(port: port) { [record] in record.now() }
        socket.send(#"{"messageType":"hello","carillon":6,"credential":"\#(credential)"}"#)
        let (isOpen, hasLeft) = (Flag(), Flag())
        await withTaskGroup(of: Void.self) { group in
            group.addTask { [self] in
                for await frame in socket.frames {
                    if frame.json["messageType"] == .string("hello") { isOpen.set() }
                    take(frame, of: socket, lot)
                }
                log.becomeAbsent(at: record.now())
            }
            group.addTask { [self] in
                while !socket.isOver, !isOver() {
                    if isOpen.isSet { socket.ping() }
                    try? await Task.sleep(for: .milliseconds(25))
                }
                guard !socket.isOver else { return }
                hasLeft.set()
                log.becomeAbsent(at: record.now())
                await socket.close()
            }
            group.addTask { [self] in
                await reportAgainAndAgain(by: socket) { socket.isOver || isOver() }
            }
        }
        guard !hasLeft.isSet else { return log.end(lot, at: record.now()) }
        log.end(lot, at: record.now(), socket.end)
        record.count("sockets that the server ended: \(socket.end)")
        if socket.end.contains("replaced") { record.fault("\(name) was told of a newer connection that it has not") }
        try await Task.sleep(for: .milliseconds(50))
    }

    private func take(_ frame: ScenarioSocket.Frame, of socket: ScenarioSocket, _ lot: Int) {
        switch frame.json["messageType"] {
        case .string("hello")?: check(hello: frame.json)
        case .string("caughtUp")?: log.becomePresent(at: record.now())
        case .string("goodbye")?, .string("providers")?: break
        default:
            let id = receive(frame.json, by: lot, .socket, at: frame.at, writtenAfter: frame.writtenAfter)
            guard let id else { return }
            log.acknowledge([id], at: record.now())
            socket.send(#"{"messageType":"ack","updates":[{"version":"\#(id)"}]}"#)
        }
    }

    // MARK: Event streams

    func useStream(until isOver: @escaping @Sendable () -> Bool) async throws {
        let began = record.now()
        let lot = log.begin(.stream, at: began)
        let (hasEnded, hasLeft) = (Flag(), Flag())
        // Is cancelled when the phone leaves.
        let reading = Task { [self] in
            defer { hasEnded.set() }
            return try await readStream(lot, began)
        }
        await withTaskGroup(of: Void.self) { group in
            group.addTask { [self] in
                while !hasEnded.isSet, !isOver() { try? await Task.sleep(for: .milliseconds(10)) }
                if !hasEnded.isSet { hasLeft.set() }
                log.becomeAbsent(at: record.now())
                reading.cancel()
            }
            group.addTask { [self] in
                await reportAgainAndAgain { hasEnded.isSet || isOver() }
            }
        }
        let end = await reading.result
        log.becomeAbsent(at: record.now())
        log.end(lot, at: record.now(), hasLeft.isSet ? "" : "\(end)")
        try await report()
        guard !hasLeft.isSet else { return }
        record.count("streams that the server ended: \(end)")
        if "\(end)".contains("replaced") { record.fault("\(name) was told of a newer connection that it has not") }
        try await Task.sleep(for: .milliseconds(50))
    }

    /// - Returns: How the server ended the stream.
    private func readStream(_ lot: Int, _ began: Int64) async throws -> String {
        let response = try await http.begin(
            .init(.GET, "/v1/inbox?carillon=6", key: credential, headers: ["accept": "text/event-stream"]))
        guard response.status == .ok else { return "\(response.status.code)" }
        var rest: [UInt8] = []
        var end = ""
        for try await buffer in response.body {
            rest += buffer.readableBytesView
            while let range = rest.firstRange(of: Array("\n\n".utf8)) {
                let lines = String(decoding: rest[..<range.lowerBound], as: UTF8.self).split(separator: "\n")
                rest.removeSubrange(..<range.upperBound)
                let data = lines.first { $0.hasPrefix("data: ") }.map { $0.dropFirst("data: ".count) }
                guard let data, let json = JSONValue(parsing: Array(data.utf8)) else { continue }
                if lines.contains("event: caughtUp") {
                    log.becomePresent(at: record.now())
                } else if lines.contains("event: end") {
                    end = String(data)
                } else if let id = receive(json, by: lot, .stream, at: record.now(), writtenAfter: began) {
                    duties.withLock { $0.acknowledgements.append(id) }
                }
            }
        }
        return end
    }

    // MARK: Polls

    func usePolls(until isOver: @escaping @Sendable () -> Bool) async throws {
        log.becomePresent(at: record.now())
        defer { log.becomeAbsent(at: record.now()) }
        while !isOver() {
            let began = record.now()
            let request = ScenarioHTTP.Request(.GET, "/v1/inbox?carillon=6&wait=1&max=40", key: credential)
            let answer = try await http.repeating(request, expecting: 200)
            let ids = receive(from: answer, .poll, since: began)
            duties.withLock { $0.acknowledgements += ids }
            try await report(looks: true)
        }
    }

    /// Envelopes are acknowledged by the position in the next poll.
    func useUpdatePolls(until isOver: @escaping @Sendable () -> Bool) async throws {
        log.becomePresent(at: record.now())
        defer { log.becomeAbsent(at: record.now()) }
        var unconfirmed: [MessageID] = []
        while true {
            // The last one confirms the earlier entries, and receives nothing.
            let isLast = isOver()
            let results = takeResults()
            let members = Self.members(results)
            let began = record.now()
            log.acknowledge(unconfirmed, at: began)
            let size = isLast ? #""max":0"# : #""wait":1,"max":40"#
            let body = pollBody(size + (members.isEmpty ? "" : "," + members))
            let answer: ScenarioHTTP.Answer
            do {
                answer = try await http.repeating(.init(.POST, "/v1/inbox", key: credential, body), expecting: 200)
            } catch {
                release(results)
                throw error
            }
            took(answer.json)
            log.confirm(unconfirmed, at: record.now())
            log.finish(results.map(\.update), at: record.now())
            if isLast { return }
            unconfirmed = receive(from: answer, .updatePoll, since: began)
            try await answerRequests()
        }
    }

    /// - Parameter began: When the poll was sent, or when it was sent first, if it was repeated.
    /// - Returns: The ids of the envelopes.
    private func receive(from answer: ScenarioHTTP.Answer, _ way: Way, since began: Int64) -> [MessageID] {
        let at = record.now()
        let lot = log.begin(way, at: began)
        defer { log.end(lot, at: at) }
        guard case .array(let envelopes)? = answer.json?["envelopes"] else {
            record.fault("\(name) got no envelopes: \(answer)")
            return []
        }
        return envelopes.compactMap { receive($0, by: lot, way, at: at, writtenAfter: began) }
    }
}
