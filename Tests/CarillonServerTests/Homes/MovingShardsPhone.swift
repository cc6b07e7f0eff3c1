import CarillonBasics
import CarillonCore
import CarillonWire
import Foundation
import NIOHTTP1
import Synchronization
import TestSupport

/// A device of a scenario. It connects in several ways, acknowledges its entries, and follows their requests.
final class ScenarioPhone: Sendable {
    enum Way: String, CaseIterable, Sendable {
        case socket, stream, poll, updatePoll, absent
    }

    /// The pending reports of the phone.
    struct Duties: Sendable {
        var acknowledgements: [MessageID] = []
        var results: [DoneUpdate] = []
        /// The requests that the phone has to answer.
        var requests: [String] = []
    }

    struct DoneUpdate: Sendable {
        var update: String
        var entry: Int

        var json: String { #"{"update":"\#(update)","entry":\#(entry),"result":"done"}"# }
    }

    /// The entries from the server.
    struct Said: Sendable {
        /// Of the last answer to `POST /v1/inbox`.
        var position = ""
        var polledAt: Int64 = 0
        /// The signs in a `hello` that the server lost state.
        var hello: [String: JSONValue]?
    }

    let number: Int
    let device: String
    let shard: Shard
    let credential: String
    /// The token of the phone's channel.
    let token: String
    let region: String
    /// The ways among which the phone chooses. A phone with one way does not change its connection.
    let ways: [Way]
    let log = PhoneLog()
    let record: ScenarioRecord
    let http: ScenarioHTTP
    let port: Int
    let duties = Mutex(Duties())
    let said = Mutex(Said())

    var name: String { "phone \(number)" }

    /// Registers a phone, opens its channel, and reports its description.
    ///
    /// - Parameter userToken: Identifies the user of the phone.
    init(
        _ number: Int, _ ways: [Way], region: String, clientKey: String, userToken: String, http: ScenarioHTTP, port: Int,
        record: ScenarioRecord
    ) async throws {
        let secret = ScenarioPhone.secret()
        let registered = try await http.repeating(
            .init(
                .POST, "/v1/devices", key: clientKey,
                #"{"registration":"\#(secret)","revision":"1","userToken":"\#(userToken)"}"#), expecting: 201)
        guard let device = registered["id"], let id = DeviceID(device), let credential = registered["credential"] else {
            throw NeverHappened()
        }
        let opened = try await http.repeating(
            .init(.POST, "/v1/device/channels", key: credential, #"{"channelID":"\#(UUID().uuidString.lowercased())"}"#),
            expecting: 201)
        guard let token = opened["token"] else { throw NeverHappened() }
        (self.number, self.ways, self.region, self.http, self.port) = (number, ways, region, http, port)
        (self.device, self.credential, self.token, self.record) = (device, credential, token, record)
        shard = Shard(of: id)
        try await poll(
            #""max":0,"kinds":["content","\#(ScenarioUpdates.kind)"],"parameters":{"revision":"1","values":{"region":"\#(region)"}}"#
        )
    }

    static func secret() -> String { (UUID().uuidString + UUID().uuidString).replacing("-", with: "").lowercased() }

    /// Exists until the scenario ends.
    func run() async {
        var random = SeededRandom(seed: record.seed &+ UInt64(1000 + number))
        while !record.isOver {
            let chosen = ways.randomElement(using: &random) ?? .socket
            let way = chosen == .absent && record.stage == .settling ? .socket : chosen
            let until = record.now() + Int64.random(in: 500...3000, using: &random)
            do {
                try await spend(way) { [self] in
                    switch record.stage {
                    case .running: ways.count > 1 && record.now() >= until || Task.isCancelled
                    case .settling: way == .absent || Task.isCancelled
                    case .over: true
                    }
                }
            } catch {
                guard !record.isOver else { return }
                record.fault("\(name) by \(way): \(error)")
                try? await Task.sleep(for: .milliseconds(200))
            }
        }
    }

    /// - Parameter isOver: Whether the phone must do something else.
    private func spend(_ way: Way, until isOver: @escaping @Sendable () -> Bool) async throws {
        switch way {
        case .socket: try await useSocket(until: isOver)
        case .stream: try await useStream(until: isOver)
        case .poll: try await usePolls(until: isOver)
        case .updatePoll: try await useUpdatePolls(until: isOver)
        case .absent:
            record.count("absences")
            while !isOver() { try await Task.sleep(for: .milliseconds(20)) }
        }
    }

    // MARK: Received entries

    /// Notes an envelope.
    ///
    /// - Returns: Its id; nil if the frame is no envelope.
    func receive(_ frame: JSONValue, by lot: Int, _ way: Way, at: Int64, writtenAfter: Int64) -> MessageID? {
        guard case .string(let version)? = frame["version"], let id = MessageID(version) else {
            record.fault("\(name) got \(ScenarioContent(frame))")
            return nil
        }
        if ScenarioContent.isResync(frame) {
            record.fault("\(name) was told to fetch everything: \(ScenarioContent(frame))")
        }
        let content = ScenarioContent(frame)
        log.add(.init(id: id, content: content, lot: lot, at: at, writtenAfter: writtenAfter))
        record.count("envelopes by \(way)")
        duties.withLock { duties in
            switch content {
            case .update(let update, let entry, let attempt) where attempt > 0:
                duties.results.append(DoneUpdate(update: update, entry: entry))
            case .service("request", let request): duties.requests.append(request)
            default: break
            }
        }
        return id
    }

    /// Compares a `hello` with the first one: another value makes a client send or fetch everything.
    func check(hello: JSONValue) {
        let names = ["carillon", "server", "history", "deviceRevision", "servicesRevision"]
        let words = Dictionary(uniqueKeysWithValues: names.map { ($0, hello[$0] ?? .null) })
        let isAsBefore = said.withLock { said in
            if said.hello == nil { said.hello = words }
            return said.hello == words
        }
        if !isAsBefore { record.fault("\(name) got another hello than at first: \(words)") }
    }
}
