import CarillonBasics
import CarillonWire
import NIOHTTP1

/// The state at the end of a scenario.
extension MovingShards {
    /// Returns all faults as texts.
    func problems() async -> [String] {
        let waiting = await waiting()
        let findings = findings()
        var problems = record.faults + findings.faults
        for loss in findings.losses {
            var text = loss.text
            if let id = loss.id {
                let isWaiting = waiting[loss.phone]?.contains("\(id)") ?? false
                text += " It \(isWaiting ? "waits" : "does not wait") in the inbox. The server knows: \(await state(of: id))"
            }
            problems.append(text)
        }
        for (phone, versions) in waiting.sorted(by: { $0.key < $1.key }) where !versions.isEmpty {
            problems.append("\(versions.count) envelopes wait for phone \(phone): \(versions.prefix(5))")
        }
        do {
            problems += try await unfinishedUpdates()
            problems += try await wrongOutcomes(findings)
        } catch {
            problems.append("the server cannot be asked: \(error)")
        }
        return problems
    }

    /// The counts of the scenario, in one line.
    func summary(_ findings: ScenarioFindings) -> String {
        let counts = record.counts.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
        return "CARILLON_SEED=\(record.seed), \(record.now()) ms, lag \(record.lag) ms, envelopes that came again before "
            + "their acknowledgement was taken: \(findings.repetitions), " + counts.joined(separator: ", ")
    }

    /// The waiting entries in the inboxes of the phones.
    private func waiting() async -> [Int: [String]] {
        var waiting: [Int: [String]] = [:]
        for phone in phones {
            let request = ScenarioHTTP.Request(.GET, "/v1/inbox?carillon=6&max=500", key: phone.credential)
            guard let answer = try? await http.repeating(request), case .array(let envelopes)? = answer.json?["envelopes"]
            else {
                record.fault("the inbox of phone \(phone.number) cannot be read")
                continue
            }
            waiting[phone.number] = envelopes.map { envelope in
                if case .string(let version)? = envelope["version"] { version } else { "none" }
            }
        }
        return waiting
    }

    private func state(of id: MessageID) async -> String {
        let answer = try? await http.repeating(.init(.GET, "/v1/messages/\(id)", key: sender))
        return answer?.description ?? "nothing"
    }

    /// Compares the outcomes of some messages with their deliveries.
    private func wrongOutcomes(_ findings: ScenarioFindings) async throws -> [String] {
        var wrong: [String] = []
        var asked = 0
        for message in messages.all.reversed() where asked < 150 {
            guard let id = message.id, message.ttl > 0, !message.mayBeReplaced,
                let outcome = outcome(of: message, came: findings.receipts[message.phone][.message(message.number)] != nil)
            else { continue }
            asked += 1
            let answer = try await http.repeating(.init(.GET, "/message/\(id)"))
            guard answer["outcome"] != outcome else { continue }
            wrong.append("\(message.text) must have the outcome \(outcome), and the server knows: \(answer)")
        }
        return wrong
    }

    /// Returns nil if the message can have several outcomes.
    private func outcome(of message: ScenarioMessage, came: Bool) -> String? {
        if message.cancellation?.status == 204 { return "cancelled" }
        guard message.cancellation == nil, message.replacement == nil else { return nil }
        if came { return message.ttl > 6 ? "acknowledged" : nil }
        guard let at = message.expiresAt, record.now() > at else { return nil }
        return "expired"
    }
}
