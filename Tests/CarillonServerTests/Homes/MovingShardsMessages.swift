import CarillonCore
import CarillonWire
import Foundation
import NIOHTTP1
import Synchronization
import TestSupport

/// A message of a scenario, and the knowledge of its sender.
struct ScenarioMessage: Sendable {
    struct Cancellation: Sendable {
        var askedAt: Int64
        var answeredAt: Int64?
        var status: Int?
    }

    let number: Int
    /// The number of the phone.
    let phone: Int
    let ttl: Int64
    let topic: String?
    let key: String?
    let askedAt: Int64
    var answeredAt: Int64?
    var id: MessageID?
    var outcome = ""
    /// The answer was a refusal after which the message can have been accepted.
    var isUncertain = false
    var cancellation: Cancellation?
    /// The number of the message of the same topic that was accepted after it.
    var replacement: Int?
    /// A message of the same topic that can have been accepted.
    var mayBeReplaced = false

    var expiresAt: Int64? { ttl > 0 ? answeredAt.map { $0 + ttl * 1000 } : nil }

    var text: String {
        var parts = ["message \(number), TTL \(ttl)"]
        if let topic { parts.append("topic \(topic)") }
        parts.append(key == nil ? "without a key" : "with a key")
        parts.append("sent at \(askedAt)")
        if let answeredAt, let id {
            parts.append("accepted at \(answeredAt) as \(id) at position \(id.position), \(outcome)")
        }
        if isUncertain { parts.append("refused, perhaps accepted") }
        if let cancellation {
            let answer = cancellation.status.map { "answered with \($0)" } ?? "not answered"
            parts.append("taken back at \(cancellation.askedAt), \(answer) at \(cancellation.answeredAt ?? 0)")
        }
        if let replacement { parts.append("replaced by message \(replacement)") }
        return parts.joined(separator: ", ")
    }
}

/// The messages of a scenario, by their numbers.
final class ScenarioMessages: Sendable {
    private let state = Mutex<[ScenarioMessage]>([])

    var all: [ScenarioMessage] { state.withLock { $0 } }

    func add(_ make: (_ number: Int) -> ScenarioMessage) -> ScenarioMessage {
        state.withLock { messages in
            let message = make(messages.count)
            messages.append(message)
            return message
        }
    }

    func change(_ number: Int, _ change: (inout ScenarioMessage) -> Void) { state.withLock { change(&$0[number]) } }
}

/// Sends messages to all phones of a scenario, one after the other.
struct ScenarioMessageSender {
    let scenario: MovingShards
    let number: Int
    private var random: SeededRandom
    /// The messages that can wait, by phone and topic. The last one replaced the others, if it was accepted.
    private var waiting: [String: [Int]] = [:]

    init(_ number: Int, in scenario: MovingShards) {
        self.number = number
        self.scenario = scenario
        random = SeededRandom(seed: scenario.record.seed &+ UInt64(2000 + number))
    }

    private var record: ScenarioRecord { scenario.record }

    mutating func run() async {
        while record.isRunning {
            do {
                try await send()
                try await Task.sleep(for: .milliseconds(Int.random(in: 0...40, using: &random)))
            } catch {
                guard !Task.isCancelled else { return }
                record.fault("sender \(number): \(error)")
                try? await Task.sleep(for: .milliseconds(200))
            }
        }
    }

    private mutating func isChosen(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

    private mutating func send() async throws {
        guard let phone = scenario.phones.randomElement(using: &random) else { return }
        let ttl: Int64 = isChosen(10) ? 0 : isChosen(12) ? 6 : 600
        let topic = ttl == 600 && isChosen(25) ? "s\(number)t\(Int.random(in: 0...1, using: &random))" : nil
        let key = ttl > 0 && isChosen(60) ? UUID().uuidString : nil
        let now = record.now()
        let message = scenario.messages.add {
            ScenarioMessage(number: $0, phone: phone.number, ttl: ttl, topic: topic, key: key, askedAt: now)
        }
        let request = request(for: message, to: phone)
        let answer = try await key == nil ? scenario.http.once(request) : scenario.http.repeating(request)
        try await accept(answer, message, request)
        guard answer.status == 201 else { return }
        if key != nil, isChosen(15) { try await sendAgain(request, message) }
        if ttl == 600, isChosen(15) {
            try await Task.sleep(for: .milliseconds(Int.random(in: 0...200, using: &random)))
            try await takeBack(message)
        }
    }

    private func request(for message: ScenarioMessage, to phone: ScenarioPhone) -> ScenarioHTTP.Request {
        var headers: HTTPHeaders = ["TTL": "\(message.ttl)", "Content-Encoding": "identity"]
        if let topic = message.topic { headers.add(name: "Topic", value: topic) }
        if let key = message.key { headers.add(name: "Idempotency-Key", value: key) }
        return .init(.POST, "/push/\(phone.token)", headers: headers, "\(message.number)")
    }

    private mutating func accept(
        _ answer: ScenarioHTTP.Answer, _ message: ScenarioMessage, _ request: ScenarioHTTP.Request
    ) async throws {
        let (number, place) = (message.number, message.topic.map { "\(message.phone) \($0)" })
        let before = place.flatMap { waiting[$0] } ?? []
        guard answer.status == 201 else {
            if answer.isRefusedForNow {
                scenario.messages.change(number) { $0.isUncertain = true }
                for other in before { scenario.messages.change(other) { $0.mayBeReplaced = true } }
                if let place { waiting[place] = before + [number] }
            }
            // A sender with a key repeats the request until it is accepted.
            guard message.key == nil, answer.isRefusedForNow else { throw ScenarioHTTP.Unexpected(request, answer) }
            return record.count("refused messages")
        }
        guard let id = Self.id(in: answer) else { throw ScenarioHTTP.Unexpected(request, answer) }
        let (now, outcome) = (record.now(), answer.headers.first(name: "carillon-outcome") ?? "")
        scenario.messages.change(number) { message in
            message.answeredAt = now
            message.id = id
            message.outcome = outcome
        }
        for other in before { scenario.messages.change(other) { $0.replacement = number } }
        if let place { waiting[place] = [number] }
        record.count("messages")
        if !before.isEmpty { record.count("replacements") }
        if message.ttl == 0 { record.count("messages of TTL 0, \(outcome)") }
    }

    private static func id(in answer: ScenarioHTTP.Answer) -> MessageID? {
        answer.headers.first(name: "location")?.split(separator: "/").last.flatMap { MessageID($0) }
    }

    /// The same request again is the same message, and another one with its key is refused.
    private mutating func sendAgain(_ request: ScenarioHTTP.Request, _ message: ScenarioMessage) async throws {
        let isOther = isChosen(25)
        var again = request
        if isOther { again.body = Array("\(-message.number - 1)".utf8) }
        let answer = try await scenario.http.repeating(again)
        let id = Self.id(in: answer)
        let first = scenario.messages.all[message.number]
        record.count("keys used again")
        guard isOther ? answer.status == 422 : answer.status == 201 && id == first.id else {
            let name = id?.description ?? "no id"
            return record.fault("a key that came again was answered with \(answer), \(name): \(first.text)")
        }
    }

    private func takeBack(_ message: ScenarioMessage) async throws {
        guard let id = scenario.messages.all[message.number].id else { return }
        let askedAt = record.now()
        scenario.messages.change(message.number) { $0.cancellation = .init(askedAt: askedAt) }
        let request = ScenarioHTTP.Request(.DELETE, "/message/\(id)")
        let answer = try await scenario.http.repeating(request)
        let now = record.now()
        scenario.messages.change(message.number) { message in
            message.cancellation = .init(askedAt: askedAt, answeredAt: now, status: answer.status)
        }
        switch answer.status {
        case 204: record.count("messages taken back")
        // It has another outcome, or the device acknowledged it before it was written.
        case 404, 409: record.count("messages that came before they were taken back")
        default: throw ScenarioHTTP.Unexpected(request, answer)
        }
    }
}

// MARK: Requirements

extension ScenarioMessages {
    func find(_ findings: inout ScenarioFindings) {
        let messages = all
        for message in messages {
            let log = findings.logs[message.phone]
            let receipts = findings.receipts[message.phone][.message(message.number)] ?? []
            for receipt in receipts {
                if let fault = fault(of: receipt, message, messages) {
                    findings.add("\(message.text) \(fault)", of: message.phone, at: receipt.at, receipts)
                }
            }
            guard let due = due(message, log) else { continue }
            findings.dues.append(due)
        }
    }

    /// Returns why a message must not have been delivered in this way.
    private func fault(of receipt: PhoneLog.Receipt, _ message: ScenarioMessage, _ messages: [ScenarioMessage]) -> String? {
        guard let id = message.id else {
            return message.isUncertain ? nil : "was not accepted, and came"
        }
        if receipt.id != id { return "came under another id" }
        if let cancellation = message.cancellation, cancellation.status == 204,
            let at = cancellation.answeredAt, receipt.writtenAfter > at
        {
            return "was given after it was taken back"
        }
        if let at = message.replacement.flatMap({ messages[$0].answeredAt }), receipt.writtenAfter > at {
            return "was given after its replacement was accepted at \(at)"
        }
        if let at = message.expiresAt, receipt.writtenAfter > at { return "was given after it expired at \(at)" }
        if message.ttl == 0, message.outcome == "dropped" { return "was dropped, and came" }
        return nil
    }

    /// Returns the entries that the phone must get; nil if the message can have ended without a delivery.
    private func due(_ message: ScenarioMessage, _ log: PhoneLog.Content) -> ScenarioDue? {
        guard let id = message.id, let since = message.answeredAt, message.replacement == nil, !message.mayBeReplaced
        else { return nil }
        if message.ttl == 0 {
            // An entry that a stream has received and not written when its device moves is lost.
            guard message.outcome == "offered", log.hadSocket(from: message.askedAt, to: since + 1000) else { return nil }
        }
        if let cancellation = message.cancellation, cancellation.status.map({ $0 == 204 }) ?? true { return nil }
        return ScenarioDue(
            phone: message.phone, content: .message(message.number), since: since, until: message.expiresAt,
            text: message.text, id: id)
    }
}
