import CarillonCore
import CarillonWire
import NIOHTTP1
import Synchronization
import TestSupport

/// The items of a scenario, whose prices cross the limit of each subscription again and again.
final class ScenarioItems: Sendable {
    struct Item: Sendable {
        var name: String
        /// Whether each crossing is kept in the inboxes. Otherwise a crossing replaces one that waits.
        var isDistinct: Bool
    }

    struct Crossing: Sendable {
        /// The title of its notifications.
        var number: Int
        /// The time at which the earlier price below the limit was sent.
        var lowSentAt: Int64
        var sentAt: Int64
        var answeredAt: Int64
    }

    /// A subscription of a phone to an item.
    struct Watch: Sendable {
        var phone: Int
        var item: String
        var key: String
        var answeredAt: Int64
    }

    static let all = [
        Item(name: "distinct.0", isDistinct: true), Item(name: "distinct.1", isDistinct: true),
        Item(name: "merged.0", isDistinct: false),
    ]

    static let rules =
        #"{"items":[{"pattern":"distinct.*","open":true,"mode":"distinct","fields":{"price":"double","n":"int"}},"#
        + #"{"pattern":"merged.*","open":true,"fields":{"price":"double","n":"int"}}]}"#

    private struct State {
        var crossings: [String: [Crossing]] = [:]
        var watches: [Watch] = []
    }

    private let state = Mutex(State())

    var watches: [Watch] { state.withLock { $0.watches } }

    func crossings(of item: String) -> [Crossing] { state.withLock { $0.crossings[item] ?? [] } }

    func add(_ crossing: Crossing, of item: String) { state.withLock { $0.crossings[item, default: []].append(crossing) } }

    func add(_ watch: Watch) { state.withLock { $0.watches.append(watch) } }
}

extension MovingShards {
    /// Subscribes a phone to the crossings of an item.
    func subscribe(_ phone: ScenarioPhone, to item: ScenarioItems.Item, key: String) async throws {
        let body =
            #"{"items":["\#(item.name)"],"fields":["price","n"],"trigger":"price > 50.0","policy":"everyCrossing","#
            + #""key":"\#(key)","format":{"title":"${n}"}}"#
        // A repetition finds the subscription of the key.
        _ = try await http.repeating(
            .init(.POST, "/v1/device/subscriptions", key: phone.credential, body), expecting: 201, 200)
        items.add(.init(phone: phone.number, item: item.name, key: key, answeredAt: record.now()))
    }

    /// Publishes prices of an item below and above the limit.
    func publish(_ item: ScenarioItems.Item) async {
        var random = SeededRandom(seed: record.seed &+ UInt64(3000 + item.name.utf8.reduce(0) { $0 + Int($1) }))
        var sequence = 0
        var number = 0
        while record.isRunning {
            do {
                let lowSentAt = record.now()
                try await publish("1.0", number, to: item, &sequence)
                let sentAt = record.now()
                number += 1
                try await publish("100.0", number, to: item, &sequence)
                items.add(
                    .init(number: number, lowSentAt: lowSentAt, sentAt: sentAt, answeredAt: record.now()), of: item.name)
                record.count("crossings")
                try await Task.sleep(for: .milliseconds(Int.random(in: 50...250, using: &random)))
            } catch {
                guard !Task.isCancelled else { return }
                record.fault("publisher of \(item.name): \(error)")
                try? await Task.sleep(for: .milliseconds(200))
            }
        }
    }

    /// An update that was published before is not taken again.
    private func publish(
        _ price: String, _ number: Int, to item: ScenarioItems.Item, _ sequence: inout Int
    ) async throws {
        sequence += 1
        let body = #"{"fields":{"price":\#(price),"n":\#(number)},"source":"s","sequence":\#(sequence)}"#
        _ = try await http.repeating(
            .init(.POST, "/v1/items/\(item.name)/updates", key: sender, body), expecting: 200)
    }

    /// Makes further subscriptions while the items cross.
    func subscribeAgainAndAgain() async {
        var random = SeededRandom(seed: record.seed &+ 4000)
        var made = 0
        while record.isRunning, made < 8 {
            do {
                try await Task.sleep(for: .milliseconds(1500))
                guard let phone = phones.randomElement(using: &random),
                    let item = ScenarioItems.all.first(where: \.isDistinct)
                else { return }
                made += 1
                try await subscribe(phone, to: item, key: "later-\(made)")
                record.count("later subscriptions")
            } catch {
                guard !Task.isCancelled else { return }
                record.fault("a subscription: \(error)")
            }
        }
    }
}

// MARK: Requirements

extension ScenarioItems {
    func find(_ findings: inout ScenarioFindings) {
        for watch in watches {
            guard let item = Self.all.first(where: { $0.name == watch.item }) else { continue }
            let crossings = crossings(of: watch.item)
            let came = findings.logs[watch.phone].receipts.filter { receipt in
                if case .firing(watch.key, _) = receipt.content { true } else { false }
            }
            findStrangers(came, watch, crossings, &findings)
            // A crossing while the subscription is created can fire or not.
            let due = crossings.filter { $0.lowSentAt > watch.answeredAt }
            for crossing in item.isDistinct ? due[...] : due.suffix(1) {
                findings.dues.append(
                    ScenarioDue(
                        phone: watch.phone, content: .firing(watch.key, crossing.number), since: crossing.answeredAt,
                        text: "crossing \(crossing.number) of \(watch.item), published at \(crossing.sentAt) to "
                            + "\(crossing.answeredAt), for subscription \(watch.key) of \(watch.answeredAt),"))
            }
        }
    }

    /// Finds firings without a crossing. One is possible behind the last answered crossing, whose request was interrupted.
    private func findStrangers(
        _ came: [PhoneLog.Receipt], _ watch: Watch, _ crossings: [Crossing], _ findings: inout ScenarioFindings
    ) {
        let numbers = Set(crossings.map(\.number))
        let last = (crossings.last?.number ?? 0) + 1
        for receipt in came {
            guard case .firing(_, let number) = receipt.content, !numbers.contains(number), number != last else { continue }
            findings.add("\(watch.item) fired \(number) without a crossing", of: watch.phone, at: receipt.at, [receipt])
        }
    }
}
