import CarillonBasics
import CarillonCore
import Foundation
import HTTPTypes
import Synchronization
import TestStores
import TestSupport
import Testing

@testable import CarillonServer

/// Runs a scenario of updates once to its end. Then runs the rest of the scenario from a copy of the store after each commit, as a
/// process does that starts after a kill. Requests without a response are sent again, and each run must have the same end.
@Suite(.timeLimit(.minutes(5)))
struct KilledUpdatesTests {
    /// The order of pages of one poll differs when the poll is repeated, and so do the events before the end of an update.
    private static let smallPages = 2

    @Test(arguments: [0, 1, 2]) func `a scenario with a kill of the server at any commit ends as it does without a kill`(
        turn: Int
    ) async throws {
        let scenario = try await Scenario(stores.openKept(), nil, turn)
        let snapshots = Snapshots(of: scenario.store)
        snapshots.begin()
        for step in scenario.steps.indices {
            snapshots.step.withLock { $0 = step }
            try await scenario.notify(step)
        }
        snapshots.end()
        let expected = try await scenario.end()
        try await stores.close(scenario.store)
        #expect(expected.processed["A"]?.contains("all/1") == true && expected.counts["n1"] != nil)
        let taken = snapshots.taken
        #expect(taken.count > 50, "\(taken.count)")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (number, snapshot) in taken.enumerated() {
                if number >= 4 { try await group.next() }
                group.addTask {
                    let again = try await Scenario(
                        stores.openCopy(snapshot.copy), scenario.cast(at: snapshot.step), turn)
                    for step in again.steps.indices where step >= snapshot.step { try await again.notify(step) }
                    let end = try await again.end()
                    #expect(
                        turn == Self.smallPages ? end.ofTheUnended == expected.ofTheUnended : end == expected,
                        "commit \(number), step \(snapshot.step)")
                    try await stores.close(again.store)
                }
            }
            try await group.waitForAll()
        }
    }

    /// A phone with its own memory, which does not depend on the server.
    private struct Phone: Sendable {
        var credential: String
        var region: String
        var revision = 1
        var position: String?
        var evaluated: [UpdateWorld.Copy] = []
        /// Labels with entries, and fetches of everything.
        var processed: Set<String> = []
    }

    private struct Cast: Sendable {
        var phones: [String: Phone]
        var updates: [String: String]
        var sender: String
    }

    private struct End: Equatable {
        var processed: [String: Set<String>]
        var counts: [String: [String: Int]]
        var actions: [String]
        var isAnythingLeft: Bool

        /// Without updates that ended just before their delivery to devices.
        var ofTheUnended: End {
            let unended: Set = ["all", "k1", "k2", "s2"]
            return End(
                processed: processed.mapValues { done in done.filter { unended.contains(String($0.prefix { $0 != "/" })) } },
                counts: counts.filter { unended.contains($0.key) }, actions: actions, isAnythingLeft: isAnythingLeft)
        }
    }

    private final class Scenario: Sendable {
        let store: any Store
        let steps: [@Sendable (Scenario) async throws -> Void]
        private let routes: RouteFixture
        private let clock = SubscriptionWorld.Clock()
        private let cast: Mutex<Cast>
        /// As they were before each step.
        private let casts = Mutex<[Int: Cast]>([:])

        init(_ store: any Store, _ known: Cast?, _ turn: Int) async throws {
            self.store = store
            routes = try await RouteFixture(store: store, time: clock.time)
            if let known {
                cast = Mutex(known)
            } else {
                let (_, first, client) = try await routes.device()
                let second = try await routes.request(.post, "/v1/devices", key: client)["credential"]
                let sender = try await routes.request(
                    .post, "/v1/keys", key: routes.admin, #"{"role":"sender","app":"com.example.app"}"#)["secret"]
                _ = try await routes.request(
                    .put, "/v1/apps/com.example.app/parameters", key: routes.admin, UpdateWorld.parameters)
                cast = Mutex(
                    Cast(
                        phones: [
                            "A": Phone(credential: first, region: "north"),
                            "B": Phone(credential: second, region: turn == 1 ? "north" : "south"),
                        ], updates: [:], sender: sender))
            }
            steps = Self.scenario(turn)
        }

        func cast(at step: Int) -> Cast? { casts.withLock { $0[step] } }

        // MARK: The scenario

        private static func scenario(_ turn: Int) -> [@Sendable (Scenario) async throws -> Void] {
            let max = turn == KilledUpdatesTests.smallPages ? 1 : 100
            return [
                { try await $0.poll("A", max) }, { try await $0.poll("B", max) },
                { try await $0.publish("n1", "content", refresh("a"), #""audience":"region == 'north'""#) },
                { try await $0.publish("all", "popup", popup) },
                { try await $0.publish("k1", "content", refresh("x"), #""orderKey":"k""#) },
                { try await $0.publish("k2", "content", refresh("y"), #""orderKey":"k""#) },
                { try await $0.publish("s", "popup", popup, #""mode":"standing","audience":"region == 'south'""#) },
                { try await $0.poll("A", max) }, { try await $0.poll("B", max) },
                { try await $0.poll("A", max, ["all": "failed", "k1": "done"]) },
                { try await $0.poll("B", max, ["k1": "deferred"]) },
                { try await $0.poll("A", max) }, { try await $0.withdraw("n1") },
                { try await $0.move("B", to: "north") }, { try await $0.poll("B", max, ["s": "done", "k1": "done"]) },
                { try await $0.publish("n2", "content", refresh("a"), #""audience":"region == 'north'""#) },
                { try await $0.poll("A", 0) },
                { try await $0.publish("n3", "content", refresh("a"), #""audience":"region == 'north'""#) },
                { try await $0.poll("A", 0) }, { try await $0.withdraw("n3") }, { try await $0.poll("A", max) },
                { try await $0.move("B", to: "south") }, { try await $0.poll("B", max, ["all": "failed"]) },
                { try await $0.publish("short", "content", refresh("b"), #""ttl":60"#) },
                { try await $0.poll("B", max) },
                { try await $0.wait(100) }, { try await $0.poll("A", max) },
                { try await $0.publish("s2", "popup", popup, #""mode":"standing""#, supersedes: "s") },
                { try await $0.poll("B", max, ["all": "failed"]) }, { try await $0.wait(90_000) },
                { try await $0.poll("A", max) }, { try await $0.poll("B", max) },
            ]
        }

        private static let popup = #"{"style":"failure","title":"t"}"#
        private static func refresh(_ object: String) -> String { #"{"action":"refresh","object":"\#(object)"}"# }

        func notify(_ step: Int) async throws {
            casts.withLock { $0[step] = cast.withLock { $0 } }
            clock.set(Timestamp(milliseconds: 1_700_000_000_000 + Int64(step) * 10_000 + waited(before: step) * 1000))
            // No device is connected any more, as after a kill.
            try await sweep()
            try await steps[step](self)
        }

        /// In seconds: the steps that wait are known.
        private func waited(before step: Int) -> Int64 { (step > 25 ? 100 : 0) + (step > 29 ? 90_000 : 0) }

        func end() async throws -> End {
            for round in 1...6 {
                clock.set(Timestamp(milliseconds: 1_700_100_000_000 + Int64(round) * 90_000_000))
                try await sweep()
                for phone in ["A", "B"] {
                    for _ in 0..<6 { try await poll(phone, 100, nil) }
                }
            }
            var counts: [String: [String: Int]] = [:]
            for (label, id) in cast.withLock({ $0.updates }) {
                let answer = try await routes.request(.get, "/v1/updates/\(id)", key: cast.withLock { $0.sender })
                guard case .object(let members)? = answer.json?["devices"] else { throw CocoaError(.coderReadCorrupt) }
                counts[label] = Dictionary(
                    members.map { ($0.name, Int(String(decoding: $0.value.bytes, as: UTF8.self)) ?? -1) }
                ) { $1 }
            }
            let audit = try await routes.request(.get, "/v1/apps/com.example.app/audit", key: routes.admin)
            guard case .array(let entries)? = audit.json?["entries"] else { throw CocoaError(.coderReadCorrupt) }
            let names = Dictionary(cast.withLock { $0.updates }.map { ($1, $0) }) { $1 }
            let actions = entries.map { entry -> String in
                guard case .string(let action)? = entry["action"], case .string(let update)? = entry["update"] else {
                    return "?"
                }
                return "\(action) \(names[update] ?? "?")"
            }
            return End(
                processed: cast.withLock { $0.phones.mapValues(\.processed) }, counts: counts, actions: actions,
                isAnythingLeft: try await stores.count(.envelopes, in: store) > 0)
        }

        // MARK: Requests

        private func publish(
            _ label: String, _ kind: String, _ payload: String, _ rest: String = #""mode":"once""#, supersedes: String? = nil
        ) async throws {
            let supersedes = supersedes.flatMap { label in cast.withLock { $0.updates[label] } }
                .map { #","supersedes":"\#($0)""# }
            let answer = try await routes.request(
                .post, "/v1/updates", key: cast.withLock { $0.sender },
                #"{"kind":"\#(kind)","payload":\#(payload),\#(rest)\#(supersedes ?? "")}"#,
                headers: [HTTPField(name: try #require(HTTPField.Name("Idempotency-Key")), value: label)])
            #expect([200, 201].contains(answer.status), "\(label): \(String(decoding: answer.body, as: UTF8.self))")
            cast.withLock { $0.updates[label] = answer["id"] }
        }

        private func withdraw(_ label: String) async throws {
            let (id, sender) = cast.withLock { ($0.updates[label] ?? "", $0.sender) }
            let answer = try await routes.request(.delete, "/v1/updates/\(id)", key: sender)
            // It may be withdrawn already.
            #expect([204, 409].contains(answer.status))
            try await sweep()
        }

        private func wait(_ seconds: Int64) async throws {
            clock.advance(seconds: seconds)
            try await sweep()
        }

        private func sweep() async throws {
            let now = clock.time.now()
            while try await !store.sweep(at: now, forgetting: .uninterrupted(at: now), limit: 500).isDone {}
            try await routes.domain.updateDelivery.sweep(forgetting: .uninterrupted(at: now))
        }

        private func move(_ name: String, to region: String) async throws {
            cast.withLock {
                $0.phones[name]?.region = region
                $0.phones[name]?.revision += 1
            }
            try await poll(name, 0)
        }

        /// - Parameter results: By labels, of its updates; nil is done with everything.
        private func poll(_ name: String, _ max: Int, _ results: [String: String]? = [:]) async throws {
            let (known, updates) = cast.withLock { ($0.phones[name], $0.updates) }
            guard var phone = known else { return }
            let labels = Dictionary(updates.map { ($1, $0) }) { $1 }
            var said: [String] = []
            for copy in phone.evaluated {
                let label = labels[copy.update] ?? "resync"
                guard let result = results.map({ $0[label] }) ?? "done" else { continue }
                if result == "done" { phone.processed.insert(label == "resync" ? label : "\(label)/\(copy.entry)") }
                phone.evaluated.removeAll { $0 == copy && result != "deferred" }
                said.append(
                    #"{"update":"\#(copy.update)","entry":\#(copy.entry),"attempt":\#(copy.attempt),"result":"\#(result)"}"#)
            }
            let position = phone.position.map { #","position":"\#($0)""# } ?? ""
            let answer = try await routes.request(
                .post, "/v1/inbox", key: phone.credential,
                #"{"protocol":1,"kinds":["content","popup"],"max":\#(max),\#(UpdateWorld.parameters(#""region":"\#(phone.region)""#, revision: "\(phone.revision)")),"results":[\#(said.joined(separator: ","))]\#(position)}"#
            )
            #expect(answer.status == 200, "\(String(decoding: answer.body, as: UTF8.self))")
            guard case .array(let envelopes)? = answer.json?["envelopes"] else { return }
            phone.position = answer["position"]
            for copy in envelopes.compactMap(UpdateWorld.Copy.init) {
                phone.evaluated.removeAll { $0.update == copy.update && $0.entry == copy.entry }
                if copy.attempt > 0 { phone.evaluated.append(copy) }
            }
            let now = phone
            cast.withLock { $0.phones[name] = now }
        }
    }
}
