import CarillonCore
import CarillonWire

/// An envelope that a phone must get.
struct ScenarioDue: Sendable {
    var phone: Int
    var content: ScenarioContent
    /// When its sender was answered.
    var since: Int64
    var until: Int64?
    var text: String
    var id: MessageID?
}

/// The faults of a scenario.
struct ScenarioFindings {
    /// An entry that did not arrive.
    struct Loss: Sendable {
        var phone: Int
        var id: MessageID?
        var text: String
    }

    let phones: [ScenarioPhone]
    let logs: [PhoneLog.Content]
    let receipts: [[ScenarioContent: [PhoneLog.Receipt]]]
    let record: ScenarioRecord
    let now: Int64
    var dues: [ScenarioDue] = []
    private(set) var losses: [Loss] = []
    private(set) var faults: [String] = []
    /// The number of envelopes that were repeated before the server had their acknowledgements.
    private(set) var repetitions = 0

    init(_ phones: [ScenarioPhone], _ record: ScenarioRecord) {
        self.phones = phones
        self.record = record
        now = record.now()
        logs = phones.map(\.log.content)
        receipts = logs.map(\.byContent)
    }

    /// - Parameter receipts: The deliveries.
    mutating func add(_ fault: String, of phone: Int, at: Int64, _ receipts: [PhoneLog.Receipt] = []) {
        faults.append(fault + ". " + history(of: phone, at: at, receipts))
    }

    // MARK: Lost or late entries

    mutating func findLosses() {
        for due in dues {
            let came = receipts[due.phone][due.content]?.first
            let end = min(came?.at ?? now, due.until ?? .max)
            let wait = logs[due.phone].longestPresence(from: due.since, to: end)
            if came == nil, due.until == nil || wait > record.allowance {
                let text = "\(due.text) did not come. " + history(of: due.phone, at: due.since)
                losses.append(Loss(phone: due.phone, id: due.id, text: text))
            } else if wait > record.allowance, let came {
                add("\(due.text) came \(wait) ms late", of: due.phone, at: came.at, [came])
            }
        }
    }

    // MARK: Entries of a phone

    /// - Parameter messages: Messages of TTL 0 have no order.
    mutating func findFaults(of phone: Int, _ messages: [ScenarioMessage]) {
        let log = logs[phone]
        var lastOfLot: [Int: PhoneLog.Receipt] = [:]
        var last: PhoneLog.Receipt?
        var first: [MessageID: PhoneLog.Receipt] = [:]
        for receipt in log.receipts {
            if case .other(let text) = receipt.content {
                add("an envelope that nobody sent came: \(text)", of: phone, at: receipt.at, [receipt])
            }
            if case .message(let number) = receipt.content {
                guard messages.indices.contains(number) else {
                    add("message \(number) was not sent", of: phone, at: receipt.at, [receipt])
                    continue
                }
                if messages[number].phone != phone {
                    add("\(messages[number].text) came to the wrong phone", of: phone, at: receipt.at, [receipt])
                }
                if messages[number].ttl == 0 {
                    if let earlier = first.updateValue(receipt, forKey: receipt.id) {
                        add("\(messages[number].text) came twice", of: phone, at: receipt.at, [earlier, receipt])
                    }
                    continue
                }
            }
            if let before = lastOfLot[receipt.lot], before.id.position >= receipt.id.position {
                add("positions do not ascend on a connection", of: phone, at: receipt.at, [before, receipt])
            }
            lastOfLot[receipt.lot] = receipt
            if let earlier = first[receipt.id] {
                findRepetition(of: earlier, receipt, phone)
            } else {
                first[receipt.id] = receipt
                if let before = last, before.id.position > receipt.id.position {
                    add("an envelope came behind a later one", of: phone, at: receipt.at, [before, receipt])
                }
                last = receipt
            }
        }
        for (content, receipts) in receipts[phone] where Set(receipts.map(\.id)).count > 1 {
            add("\(content) came under several ids", of: phone, at: receipts[0].at, receipts)
        }
    }

    /// Acknowledged entries are not delivered again. On a socket, it is unknown when the server has the acknowledgement.
    private mutating func findRepetition(of earlier: PhoneLog.Receipt, _ receipt: PhoneLog.Receipt, _ phone: Int) {
        let began = logs[phone].lots[receipt.lot].began
        let acknowledgement = logs[phone].acknowledgements[receipt.id]
        if earlier.lot == receipt.lot {
            add("\(receipt.content) came twice by one connection", of: phone, at: receipt.at, [earlier, receipt])
        } else if let at = acknowledgement?.answeredAt, at < began {
            add(
                "\(receipt.content) came again after its acknowledgement was answered at \(at)", of: phone, at: receipt.at,
                [earlier, receipt])
        } else if let at = acknowledgement?.sentAt, at + record.allowance / 2 < began {
            add(
                "\(receipt.content) came again long after it was acknowledged at \(at)", of: phone, at: receipt.at,
                [earlier, receipt])
        } else {
            repetitions += 1
        }
    }

    // MARK: History

    /// Returns the events around a moment: the deliveries, the connections of the phone, and the moves of its shard.
    private func history(of phone: Int, at: Int64, _ came: [PhoneLog.Receipt] = []) -> String {
        let (from, to) = ((came.map(\.at).min() ?? at) - 700, max(came.map(\.at).max() ?? at, at) + 1500)
        let log = logs[phone]
        let envelopes = came.map { receipt in
            "came at \(receipt.at) as \(receipt.id) at position \(receipt.id.position) by "
                + "\(log.lots[receipt.lot].text), written after \(receipt.writtenAfter)"
        }
        // Each poll is a connection of its own.
        let connections = log.lots.filter { $0.began <= to && $0.ended ?? .max >= from }.map(\.text)
        let moves = record.moves(of: phones[phone].shard, from: from, to: to).map(\.description)
        let parts = [
            "Phone \(phone), shard \(phones[phone].shard.number)", "connections: " + Self.some(connections),
            "moves: " + Self.some(moves),
        ]
        return (parts + envelopes).joined(separator: "; ") + "."
    }

    private static func some(_ texts: [String]) -> String {
        let shown = texts.count > 16 ? texts.prefix(8) + ["(\(texts.count - 16) more)"] + texts.suffix(8) : texts[...]
        return shown.isEmpty ? "none" : shown.joined(separator: ", ")
    }
}
