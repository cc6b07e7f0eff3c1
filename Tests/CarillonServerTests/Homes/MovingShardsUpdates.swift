import CarillonBasics
import CarillonCore
import CarillonWire
import Foundation
import NIOHTTP1
import Synchronization
import TestSupport

/// An update of a scenario, for the phones of a region or for all.
struct ScenarioUpdate: Sendable {
    let id: String
    /// Nil: for all phones.
    let region: String?
    let sentAt: Int64
    let answeredAt: Int64
    var withdrawalSentAt: Int64?
    /// When the answer arrived that no device receives the update any more.
    var withdrawnAt: Int64?

    var text: String {
        "update \(id) for \(region ?? "all"), published at \(sentAt) to \(answeredAt)"
            + (withdrawalSentAt.map { ", withdrawn at \($0) to \(withdrawnAt ?? 0)" } ?? "")
    }

    func isFor(_ phone: ScenarioPhone) -> Bool { region == nil || region == phone.region }
}

final class ScenarioUpdates: Sendable {
    /// The kind of some updates. The others are content.
    static let kind = "com.example.note"

    private let state = Mutex<[ScenarioUpdate]>([])

    var all: [ScenarioUpdate] { state.withLock { $0 } }

    func add(_ update: ScenarioUpdate) -> Int {
        state.withLock { updates in
            updates.append(update)
            return updates.count - 1
        }
    }

    func change(_ place: Int, _ change: (inout ScenarioUpdate) -> Void) { state.withLock { change(&$0[place]) } }
}

extension MovingShards {
    func publishUpdates() async {
        var random = SeededRandom(seed: record.seed &+ 5000)
        var number = 0
        while record.isRunning {
            do {
                number += 1
                try await publishUpdate(number, &random)
                try await Task.sleep(for: .milliseconds(Int.random(in: 100...400, using: &random)))
            } catch {
                guard !Task.isCancelled else { return }
                record.fault("publisher of updates: \(error)")
                try? await Task.sleep(for: .milliseconds(200))
            }
        }
    }

    private func publishUpdate(_ number: Int, _ random: inout SeededRandom) async throws {
        let region = [nil, "north", "south"].randomElement(using: &random) ?? nil
        let audience = region.map { #","audience":"region == '\#($0)'""# } ?? ""
        let definition =
            Bool.random(using: &random)
            ? #""kind":"content","payload":{"action":"refresh","object":"o\#(number)"}"#
            : #""kind":"\#(ScenarioUpdates.kind)","payload":{"n":\#(number)}"#
        let request = ScenarioHTTP.Request(
            .POST, "/v1/updates", key: sender, headers: ["Idempotency-Key": UUID().uuidString],
            "{\(definition)\(audience),\"ttl\":3600}")
        let sentAt = record.now()
        // A repetition is answered with 200.
        let answer = try await http.repeating(request, expecting: 201, 200)
        guard let id = answer["id"] else { throw ScenarioHTTP.Unexpected(request, answer) }
        let place = updates.add(ScenarioUpdate(id: id, region: region, sentAt: sentAt, answeredAt: record.now()))
        record.count("updates")
        if Int.random(in: 0..<10, using: &random) == 0 {
            let again = try await http.repeating(request, expecting: 200)
            if again["id"] != id { record.fault("a key of an update that came again made another update: \(again)") }
        }
        guard Int.random(in: 0..<8, using: &random) == 0 else { return }
        try await Task.sleep(for: .milliseconds(Int.random(in: 0...200, using: &random)))
        let withdrawalSentAt = record.now()
        updates.change(place) { $0.withdrawalSentAt = withdrawalSentAt }
        _ = try await http.repeating(.init(.DELETE, "/v1/updates/\(id)", key: sender), expecting: 204)
        let withdrawnAt = record.now()
        updates.change(place) { $0.withdrawnAt = withdrawnAt }
        record.count("withdrawals")
    }

    /// Returns the updates for which the server does not know that each device of the audience is done, with the known states.
    func unfinishedUpdates() async throws -> [String] {
        var unfinished: [String] = []
        for update in updates.all where update.withdrawalSentAt == nil {
            let count = phones.count { update.isFor($0) }
            let answer = try await http.repeating(.init(.GET, "/v1/updates/\(update.id)", key: sender), expecting: 200)
            let states = answer.json?["devices"] ?? .null
            guard states != .object([.init(name: "done", value: .integer(count))]) else { continue }
            let text = String(decoding: states.bytes, as: UTF8.self)
            unfinished.append("\(update.text) has the states \(text), and must be done by \(count) phones")
        }
        return unfinished
    }
}

// MARK: Requirements

extension ScenarioUpdates {
    func find(_ findings: inout ScenarioFindings) {
        let updates = Dictionary(uniqueKeysWithValues: all.map { ($0.id, $0) })
        for phone in findings.phones {
            let log = findings.logs[phone.number]
            for receipt in log.receipts {
                guard case .update(let id, let entry, let attempt) = receipt.content else { continue }
                guard let update = updates[id] else { continue }
                if let fault = fault(of: receipt, update, phone, log.finished[id], (entry, attempt)) {
                    findings.add("\(update.text) \(fault)", of: phone.number, at: receipt.at, [receipt])
                }
            }
            for update in updates.values where update.withdrawalSentAt == nil && update.isFor(phone) {
                findings.dues.append(
                    ScenarioDue(
                        phone: phone.number, content: .update(update.id, entry: 1, attempt: 1), since: update.answeredAt,
                        text: update.text))
            }
        }
    }

    private func fault(
        of receipt: PhoneLog.Receipt, _ update: ScenarioUpdate, _ phone: ScenarioPhone, _ finishedAt: Int64?,
        _ turn: (entry: Int, attempt: Int)
    ) -> String? {
        if !update.isFor(phone) { return "is not for the phone" }
        if turn.attempt == 0 { return update.withdrawalSentAt == nil ? "was taken back, and not withdrawn" : nil }
        if turn.entry != 1 || turn.attempt != 1 { return "was given as entry \(turn.entry), attempt \(turn.attempt)" }
        if let at = update.withdrawnAt, receipt.writtenAfter > at { return "was given after it was withdrawn" }
        if let finishedAt, receipt.writtenAfter > finishedAt { return "was given after it was done at \(finishedAt)" }
        return nil
    }
}
