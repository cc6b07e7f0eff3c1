import CarillonWire
import Synchronization

/// The entries of a phone, with their connections.
final class PhoneLog: Sendable {
    /// A connection, or one response to a poll. Its envelopes are in order.
    struct Lot: Sendable {
        var number: Int
        var way: ScenarioPhone.Way
        var began: Int64
        var ended: Int64?
        var end = ""

        var text: String {
            "\(way) \(number) from \(began) to \(ended.map { "\($0)" } ?? "now")\(end.isEmpty ? "" : " (\(end))")"
        }
    }

    struct Receipt: Sendable {
        var id: MessageID
        var content: ScenarioContent
        var lot: Int
        var at: Int64
        /// The server wrote the envelope after this moment.
        var writtenAfter: Int64
    }

    struct Acknowledgement: Sendable {
        var sentAt: Int64
        /// When the server answered that it has the acknowledgement. A socket has no such answer.
        var answeredAt: Int64?
    }

    /// A time in which the phone was connected, or polled.
    struct Presence: Sendable {
        var from: Int64
        var to: Int64?
    }

    /// When a request was answered, and the statuses of the answers to `received` and `reply`.
    struct Answered: Sendable {
        var at: Int64
        var statuses: [Int]
    }

    struct Content: Sendable {
        var lots: [Lot] = []
        var receipts: [Receipt] = []
        var acknowledgements: [MessageID: Acknowledgement] = [:]
        var presences: [Presence] = []
        /// When the server had taken the results of updates.
        var finished: [String: Int64] = [:]
        /// The answers to requests, by their ids.
        var answered: [String: Answered] = [:]

        var byContent: [ScenarioContent: [Receipt]] { Dictionary(grouping: receipts, by: \.content) }

        /// Returns the longest part of a time in which the phone was there without a break.
        func longestPresence(from: Int64, to: Int64) -> Int64 {
            presences.map { min($0.to ?? to, to) - max($0.from, from) }.max() ?? 0
        }

        /// Whether one socket was there for all of a time.
        func hadSocket(from: Int64, to: Int64) -> Bool {
            presences.contains { $0.from < from && $0.to ?? .max > to }
                && lots.contains { $0.way == .socket && $0.began < from && $0.ended ?? .max > to }
        }
    }

    private let state = Mutex(Content())

    var content: Content { state.withLock { $0 } }

    // MARK: Connections

    func begin(_ way: ScenarioPhone.Way, at: Int64) -> Int {
        state.withLock { state in
            state.lots.append(Lot(number: state.lots.count, way: way, began: at))
            return state.lots.count - 1
        }
    }

    func end(_ lot: Int, at: Int64, _ end: String = "") {
        state.withLock { state in
            state.lots[lot].ended = at
            state.lots[lot].end = end
        }
    }

    func becomePresent(at: Int64) { state.withLock { $0.presences.append(Presence(from: at)) } }

    func becomeAbsent(at: Int64) {
        state.withLock { state in
            guard let last = state.presences.indices.last, state.presences[last].to == nil else { return }
            state.presences[last].to = at
        }
    }

    // MARK: Envelopes

    func add(_ receipt: Receipt) { state.withLock { $0.receipts.append(receipt) } }

    func acknowledge(_ ids: [MessageID], at: Int64) {
        state.withLock { state in
            for id in ids where state.acknowledgements[id] == nil {
                state.acknowledgements[id] = Acknowledgement(sentAt: at)
            }
        }
    }

    /// The server answered that it has acknowledgements.
    func confirm(_ ids: [MessageID], at: Int64) {
        state.withLock { state in
            for id in ids where state.acknowledgements[id]?.answeredAt == nil {
                state.acknowledgements[id]?.answeredAt = at
            }
        }
    }

    func finish(_ updates: [String], at: Int64) {
        state.withLock { state in
            for update in updates where state.finished[update] == nil { state.finished[update] = at }
        }
    }

    func answered(_ request: String, with statuses: [Int], at: Int64) {
        state.withLock { state in
            if state.answered[request] == nil { state.answered[request] = Answered(at: at, statuses: statuses) }
        }
    }
}
