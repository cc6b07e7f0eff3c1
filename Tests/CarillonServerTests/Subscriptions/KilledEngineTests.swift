import CarillonBasics
import CarillonCore
import Foundation
import HTTPTypes
import Synchronization
import TestStores
import TestSupport
import Testing

@testable import CarillonServer

/// A scenario of items and subscriptions runs once to its end. Then it runs again from the state that each of its commits left on
/// disk, as in a process that was killed behind it: a caller without an answer repeats its request, and the result must be the
/// same as without the kill.
@Suite(.timeLimit(.minutes(4)))
struct KilledEngineTests {
    @Test func `a server that is killed at any commit continues as if it had not been`() async throws {
        let scenario = try await Scenario(stores.openKept(), Cast?.none)
        let snapshots = Snapshots(of: scenario.store)
        snapshots.begin()
        for step in scenario.steps.indices {
            snapshots.step.withLock { $0 = step }
            try await scenario.notify(step)
        }
        snapshots.end()
        let expected = try await scenario.end()
        try await stores.close(scenario.store)
        let taken = snapshots.taken
        #expect(taken.count > 80, "\(taken.count)")
        #expect(expected.pushes > 15 && expected.statuses["once"] == "triggered")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (number, snapshot) in taken.enumerated() {
                if number >= 4 { try await group.next() }
                group.addTask {
                    let again = try await Scenario(stores.openCopy(snapshot.copy), scenario.cast)
                    try await again.recover(in: snapshot.step)
                    for step in again.steps.indices where step >= snapshot.step { try await again.notify(step) }
                    let (notified, before) = (again.notified.withLock { $0 }, scenario.notified.withLock { $0 })
                    let words: Comment = "commit \(number), step \(snapshot.step)"
                    // A firing that the device acknowledged just before the kill is not delivered again.
                    #expect(Set(notified[snapshot.step] ?? []).isSubset(of: before[snapshot.step] ?? []), words)
                    for step in again.steps.indices where step > snapshot.step {
                        #expect(notified[step]?.sorted() == before[step]?.sorted(), "\(words), delivered in step \(step)")
                    }
                    let end = try await again.end()
                    #expect(end == expected, words)
                    try await stores.close(again.store)
                }
            }
            try await group.waitForAll()
        }
    }

    /// The participants, with any process that serves them.
    private struct Cast: Sendable {
        var id: String
        var device: String
        var sender: String
    }

    private struct End: Equatable {
        var statuses: [String: String]
        var prices: [String]
        /// One for each firing.
        var pushes: Int
        var isAnythingLeft: Bool
    }

    private final class Scenario: Sendable {
        let store: any Store
        let cast: Cast
        let notified = Mutex<[Int: [String]]>([:])
        let steps: [@Sendable (Scenario) async throws -> Void]
        private let routes: RouteFixture

        private final class Clock: Sendable {
            let now = Mutex(Timestamp(milliseconds: 1_700_000_000_000))
        }

        private let time: Clock

        init(_ store: any Store, _ cast: Cast?) async throws {
            self.store = store
            let time = Clock()
            self.time = time
            routes = try await RouteFixture(store: store, time: TimeSource { time.now.withLock { $0 } })
            if let cast {
                self.cast = cast
            } else {
                let (id, device, _) = try await routes.device()
                let sender = try await routes.request(
                    .post, "/v1/keys", key: routes.admin, #"{"role":"sender","app":"com.example.app"}"#)["secret"]
                _ = try await routes.request(
                    .put, "/v1/apps/com.example.app/items", key: routes.admin, SubscriptionWorld.openRules)
                let profile = #"{"platform":"apple","pushToken":"aa01","environment":"test"}"#
                _ = try await routes.request(.patch, "/v1/device", key: device, profile)
                self.cast = Cast(id: id, device: device, sender: sender)
            }
            try await routes.domain.gateways.open()
            steps = Self.scenario
        }

        // MARK: The scenario

        private static let scenario: [@Sendable (Scenario) async throws -> Void] = [
            { try await $0.subscribe("once", #""trigger":"price > 10.0""#) },
            { try await $0.subscribe("crossing", #""trigger":"price > 10.0","policy":"everyCrossing""#) },
            { try await $0.subscribe("every", #""policy":"every""#) },
            { try await $0.subscribe("paced", #""policy":"every","maxFrequency":0.06"#) },
            { try await $0.subscribe("always", #""trigger":"price > 10.0","policy":"everyCrossing""#, route: "always") },
            { try await $0.subscribe("both", #""trigger":"price > 10.0""#, items: #""stock.A","stock.B""#) },
            { try await $0.publish("A", 5, 1) }, { try await $0.publish("A", 11, 2) }, { try await $0.publish("A", 12, 3) },
            { try await $0.publish("B", 11, 1) }, { try await $0.publish("A", 5, 4) }, { try await $0.publish("B", 5, 2) },
            { try await $0.change("once", "{}") }, { try await $0.change("both", "{}") },
            { try await $0.publish("A", 13, 5) },
            { try await $0.change("crossing", #"{"trigger":"price > 13.5"}"#) }, { try await $0.remove("every") },
            {
                try await $0.publish(
                    (6...9).map { #"{"item":"stock.A","fields":{"price":\#($0 * 2)},"source":"s","sequence":\#($0)}"# })
            },
            { try await $0.operate("suspend") }, { try await $0.publish("A", 5, 10) }, { try await $0.operate("resume") },
            { try await $0.publish("A", 4, 11) }, { try await $0.publish("A", 20, 12) },
            { try await $0.change("once", #"{"trigger":"price > 30.0"}"#) }, { try await $0.publish("A", 31, 13) },
            { try await $0.subscribe("late", #""trigger":"price > 30.0""#) },
        ]

        func notify(_ step: Int) async throws {
            setTime(of: step)
            try await settle()
            try await steps[step](self)
            try await settle()
            _ = try await routes.domain.firings.notifyThrottled()
            try await settle()
            let inbox = try await routes.request(.get, "/v1/inbox?carillon=4&max=500", key: cast.device)
            guard case .array(let envelopes)? = inbox.json?["envelopes"] else { return }
            let fired = envelopes.compactMap { envelope -> String? in
                guard case .string(let key)? = envelope["fired"]?["key"],
                    case .string(let title)? = envelope["fired"]?["notification"]?["title"]
                else { return nil }
                return "\(key): \(title)"
            }
            notified.withLock { $0[step] = fired }
            let results = envelopes.compactMap { envelope -> String? in
                guard case .string(let version)? = envelope["version"] else { return nil }
                return #"{"version":"\#(version)","result":"acknowledged"}"#
            }
            guard !results.isEmpty else { return }
            let body = #"{"results":[\#(results.joined(separator: ","))]}"#
            _ = try await routes.request(.post, "/v1/inbox/results", key: cast.device, body)
            try await push()
        }

        private func push() async throws {
            let domain = routes.domain
            for push in try await domain.outbox.due({ domain.gateways.isConfigured($0) }).pushes {
                let answer = await domain.gateways.gateway(push.queue)?.send(push) ?? .notSent
                _ = await domain.outbox.ended(push, answer, hasOther: false)
            }
        }

        private func setTime(of step: Int) {
            time.now.withLock { $0 = Timestamp(milliseconds: 1_700_000_000_000 + Int64(step) * 10_000) }
        }

        /// As a process begins.
        func recover(in step: Int) async throws {
            setTime(of: step)
            try await routes.domain.itemEngine.notifyRest()
            try await routes.domain.subscriptions.removeEnded()
            try await settle()
        }

        private func settle() async throws {
            try await routes.domain.subscriptions.removeEnded()
            while await !routes.domain.itemEngine.isIdle { try await Task.sleep(for: .milliseconds(1)) }
        }

        /// When the requests that a killed process had begun to send were sent by another.
        func end() async throws -> End {
            setTime(of: steps.count + 360)
            try await push()
            try await settle()
            let list = try await routes.request(.get, "/v1/device/subscriptions", key: cast.device)
            guard case .array(let all)? = list.json?["subscriptions"] else { throw CocoaError(.coderReadCorrupt) }
            var statuses: [String: String] = [:]
            for one in all {
                guard case .string(let key)? = one["key"], case .string(let status)? = one["status"] else { continue }
                statuses[key] = status
            }
            var prices: [String] = []
            for item in ["A", "B"] {
                let item = try await routes.request(.get, "/v1/items/stock.\(item)", key: cast.sender)
                prices.append(String(decoding: item.json?["fields"]?.bytes ?? [], as: UTF8.self))
            }
            var left = 0
            for rows in [StoredRows.firings, .handOvers, .keptPushes] {
                left += try await stores.count(rows, in: store)
            }
            return End(
                statuses: statuses, prices: prices,
                pushes: try await stores.countFiredPushes(in: store),
                isAnythingLeft: left > 0)
        }

        // MARK: Requests

        private func ask(_ method: HTTPRequest.Method, _ path: String, key: String, _ body: String? = nil) async throws {
            let answer = try await routes.request(method, path, key: key, body)
            #expect((200..<300).contains(answer.status), "\(path): \(String(decoding: answer.body, as: UTF8.self))")
        }

        private func subscribe(
            _ key: String, _ rest: String, items: String = #""stock.A""#, route: String = "unlessSeen"
        ) async throws {
            try await ask(
                .post, "/v1/device/subscriptions", key: cast.device,
                #"{"items":[\#(items)],"fields":["price"],"key":"\#(key)","format":{"title":"${item} ${price}","badge":"auto","route":"\#(route)"},\#(rest)}"#
            )
        }

        private func publish(_ item: String, _ price: Int, _ sequence: Int) async throws {
            try await ask(
                .post, "/v1/items/stock.\(item)/updates", key: cast.sender,
                #"{"fields":{"price":\#(price)},"source":"s","sequence":\#(sequence)}"#)
        }

        private func publish(_ lines: [String]) async throws {
            try await ask(.post, "/v1/items/updates", key: cast.sender, lines.joined(separator: "\n"))
        }

        private func change(_ key: String, _ patch: String) async throws {
            let list = try await routes.request(.get, "/v1/device/subscriptions?key=\(key)", key: cast.device)
            guard case .array(let some)? = list.json?["subscriptions"], case .string(let id)? = some.first?["id"] else {
                throw CocoaError(.coderReadCorrupt)
            }
            try await ask(.patch, "/v1/device/subscriptions/\(id)", key: cast.device, patch)
        }

        private func remove(_ key: String) async throws {
            try await ask(.delete, "/v1/device/subscriptions?key=\(key)", key: cast.device)
        }

        private func operate(_ what: String) async throws {
            try await ask(.post, "/v1/devices/\(cast.id)/\(what)", key: routes.admin)
        }
    }
}
