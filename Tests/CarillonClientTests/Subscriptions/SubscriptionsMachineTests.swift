import CarillonBasics
import CarillonWire
import Foundation
import Synchronization
import Testing

@testable import CarillonClient

/// Not the one of the wire.
private typealias NotificationFormat = CarillonClient.NotificationFormat

struct SubscriptionsMachineTests {
    private typealias Action = SubscriptionsMachine.Action
    private var machine = SubscriptionsMachine()

    private static func definition(_ key: String?, _ trigger: String = "price > 1.0") -> SubscriptionDefinition {
        SubscriptionDefinition(
            items: ["i"], fields: ["price"], mode: nil, trigger: trigger, format: NotificationFormat(title: "t"),
            policy: .once, key: key, tags: [], expiresAt: nil)
    }

    private static func body(
        _ id: String, _ definition: SubscriptionDefinition, status: String = "subscribed",
        at: String = "2026-01-01T00:00:00.000Z"
    ) -> SubscriptionBody {
        SubscriptionBody(
            id: id, items: definition.items, fields: definition.fields, mode: nil, trigger: definition.trigger,
            format: definition.format.json, policy: "once", coolDown: nil, key: definition.key, tags: [], expiresAt: nil,
            status: status, statusAt: at, createdAt: at, firedAt: nil, hash: definition.hash)
    }

    private static func request(_ actions: [Action]) throws -> ClientFrame.Request {
        try #require(requests(actions).first)
    }

    private static func requests(_ actions: [Action]) -> [ClientFrame.Request] {
        actions.compactMap { if case .send(let request) = $0 { request } else { nil } }
    }

    private static func events(_ actions: [Action]) -> [NotificationSubscriptionEvent] {
        actions.flatMap { action -> [NotificationSubscriptionEvent] in
            if case .notify(_, _, let events) = action { events } else { [] }
        }
    }

    private mutating func answer(
        _ request: ClientFrame.Request, _ status: Int, _ body: some Encodable = ["detail": "no", "code": "field_invalid"]
    ) throws -> [Action] {
        machine.answered(.init(id: request.id, status: status, body: Array(try JSONEncoder().encode(body))))
    }

    @Test mutating func `a subscription is active until the server has it, and then it is subscribed`() throws {
        let (number, actions) = machine.subscribed(Self.definition("k"))
        #expect(Self.events(actions) == [.statusChanged(.active)])
        let request = try Self.request(machine.connected(version: 3))
        #expect(request.method == "POST" && request.path == "/v1/device/subscriptions")
        #expect(JSONValue(parsing: request.body)?["key"] == .string("k"))
        let taken = try answer(request, 201, Self.body("01", Self.definition("k")))
        #expect(Self.events(taken) == [.statusChanged(.subscribed), .subscribed])
        #expect(machine.entries[number]?.id == "01")
        #expect(Self.events(machine.fired("01", at: 5)) == [.statusChanged(.triggered), .triggered])
        #expect(machine.entries[number]?.statusAt == 5)
        #expect(Self.events(machine.fired("01", at: 6)) == [.triggered])
    }

    @Test mutating func `a firing whose handler crashed changes the status, and is not reported`() throws {
        let (number, _) = machine.subscribed(Self.definition("k"))
        let request = try Self.request(machine.connected(version: 3))
        _ = try answer(request, 201, Self.body("01", Self.definition("k")))
        #expect(Self.events(machine.fired("01", at: 5, isNotified: false)) == [.statusChanged(.triggered)])
        #expect(machine.entries[number]?.statusAt == 5)
        let again = machine.fired("01", at: 6, isNotified: false)
        #expect(again.isEmpty)
    }

    @Test mutating func `a refusal is reported before the status, and nothing remains`() throws {
        let (number, _) = machine.subscribed(Self.definition("k"))
        let request = try Self.request(machine.connected(version: 3))
        let refused = try answer(request, 400)
        #expect(
            Self.events(refused) == [
                .subscriptionFailed(PushError(.subscriptionRefused, "field_invalid: no")), .statusChanged(.unknown),
            ])
        #expect(machine.entries.isEmpty && refused.contains(.removed(number)))
    }

    @Test mutating func `a server of an earlier version receives no subscriptions`() {
        _ = machine.subscribed(Self.definition("k"))
        let error = PushError(.serverTooOld, "The server is of a version that has no subscriptions.")
        #expect(Self.events(machine.connected(version: 2)) == [.subscriptionFailed(error), .statusChanged(.unknown)])
        #expect(Self.events(machine.subscribed(Self.definition("k")).actions).contains(.subscriptionFailed(error)))
    }

    @Test mutating func `unanswered requests are sent again, except those that could create a duplicate`() throws {
        _ = machine.subscribed(Self.definition("k"))
        _ = machine.subscribed(Self.definition(nil))
        let first = try Self.request(machine.connected(version: 3))
        #expect(machine.disconnected().isEmpty)
        let again = try Self.request(machine.connected(version: 3))
        #expect(again.body == first.body && again.id != first.id)
        #expect(try answer(first, 201, Self.body("01", Self.definition("k"))).isEmpty, "it belongs to another connection")
        let second = try Self.request(try answer(again, 201, Self.body("01", Self.definition("k"))))
        #expect(JSONValue(parsing: second.body)?["key"] == nil)
        #expect(
            Self.events(machine.disconnected()) == [
                .subscriptionFailed(PushError(.interrupted, "The connection ended before the server's answer.")),
                .statusChanged(.unknown),
            ])
        #expect(machine.connected(version: 3).isEmpty)
    }

    @Test mutating func `a busy server is called again after a while`() throws {
        _ = machine.subscribed(Self.definition("k"))
        let request = try Self.request(machine.connected(version: 3))
        #expect(try answer(request, 429) == [.wait(seconds: 5)])
        _ = machine.subscribed(Self.definition("l"))
        let again = try Self.request(machine.timePassed())
        #expect(again.body == request.body)
    }

    @Test mutating func `changes that wait are one, with the last of each`() throws {
        let (number, _) = machine.subscribed(Self.definition("k"))
        let put = try Self.request(machine.connected(version: 3))
        _ = try answer(put, 201, Self.body("01", Self.definition("k")))
        let first = try Self.request(machine.changed(number, .trigger, Self.definition("k", "price > 2.0")))
        #expect(first.method == "PATCH" && first.path.hasSuffix("/01"))
        for trigger in ["price > 3.0", "price > 4.0"] {
            let actions = machine.changed(number, .trigger, Self.definition("k", trigger))
            #expect(!actions.contains { if case .send = $0 { true } else { false } }, "one is under way")
        }
        var last = Self.definition("k", "price > 4.0")
        last.format = NotificationFormat(title: "other")
        _ = machine.changed(number, .format, last)
        let answered = try answer(first, 200, Self.body("01", Self.definition("k", "price > 2.0")))
        #expect(Self.events(answered) == [.propertyChanged(.triggerExpression)])
        let second = try Self.request(answered)
        let patch = try #require(JSONValue(parsing: second.body))
        #expect(patch["trigger"] == .string("price > 4.0") && patch["format"]?["title"] == .string("other"))
        let refused = try answer(second, 400)
        #expect(Self.requests(refused).isEmpty, "all requests were sent")
        let error = PushError(.subscriptionRefused, "field_invalid: no")
        #expect(
            Self.events(refused) == [
                .modificationFailed(.notificationFormat, error), .modificationFailed(.triggerExpression, error),
            ])
        #expect(machine.entries[number]?.definition.trigger == "price > 2.0", "it stays as it was there")
    }

    @Test mutating func `a declared set is compared, and only what differs is sent`() throws {
        let definitions = ["a", "b", "c"].map { Self.definition($0) }
        let (numbers, _) = machine.declared(definitions)
        let compare = try Self.request(machine.connected(version: 3))
        #expect(compare.method == "PUT")
        let keys = try #require(JSONValue(parsing: compare.body)?["keys"])
        #expect(keys["b"] == .string(definitions[1].hash))
        let put = try Self.request(
            machine.answered(
                .init(id: compare.id, status: 200, body: Array(#"{"wanted":["b"],"removed":1}"#.utf8))))
        #expect(put.method == "POST" && JSONValue(parsing: put.body)?["key"] == .string("b"))
        let list = try Self.request(try answer(put, 201, Self.body("0b", definitions[1])))
        #expect(list.method == "GET")
        let bodies = zip(["0a", "0b", "0c"], definitions).map {
            Self.body($0, $1, status: $0 == "0c" ? "triggered" : "subscribed")
        }
        let listed = try answer(list, 200, SubscriptionList(subscriptions: bodies, next: nil))
        #expect(listed.last == .listed)
        #expect(numbers.map { machine.entries[$0]?.status } == [.subscribed, .subscribed, .triggered])
        #expect(numbers.map { machine.entries[$0]?.id } == ["0a", "0b", "0c"])
        #expect(machine.entries.count == 3)
    }

    @Test mutating func `subscriptions of the server are found page by page, and others are removed`() throws {
        _ = machine.requested()
        let (own, _) = machine.subscribed(Self.definition(nil))
        let list = try Self.request(machine.connected(version: 3))
        #expect(list.path == "/v1/device/subscriptions?limit=100")
        let first = try answer(
            list, 200, SubscriptionList(subscriptions: [Self.body("01", Self.definition("x"))], next: "01"))
        #expect(first.contains { if case .found = $0 { true } else { false } } && !first.contains(.listed))
        let next = try Self.request(first)
        #expect(next.path.hasSuffix("&after=01"))
        let second = try answer(next, 200, SubscriptionList(subscriptions: [], next: nil))
        #expect(second.contains(.listed))
        let put = try Self.request(second)
        _ = try answer(put, 201, Self.body("02", Self.definition(nil)))
        #expect(machine.entries[own]?.id == "02" && machine.entries.count == 2)
        _ = machine.disconnected()
        let again = try Self.request(machine.connected(version: 3))
        let gone = try answer(
            again, 200, SubscriptionList(subscriptions: [Self.body("01", Self.definition("x"))], next: nil))
        #expect(Self.events(gone) == [.statusChanged(.unknown), .unsubscribed])
        #expect(gone.contains(.removed(own)) && gone.last == .listed)
    }

    @Test
    mutating func `subscriptions that a restored server lost are created again, and its outdated ones are changed again`()
        throws
    {
        _ = machine.connected(version: 3)
        var numbers: [Int] = []
        for (id, key) in [("01", nil), ("02", "k"), ("03", nil)] as [(String, String?)] {
            let (number, actions) = machine.subscribed(Self.definition(key, "price > \(id).0"))
            _ = try answer(try Self.request(actions), 201, Self.body(id, Self.definition(key, "price > \(id).0")))
            numbers.append(number)
        }
        _ = machine.disconnected()
        #expect(machine.connected(version: 3).isEmpty, "no list was requested")
        _ = machine.disconnected()
        let list = try Self.request(machine.connected(version: 3, isRestored: true))
        #expect(list.method == "GET")
        let old = [
            Self.body("02", Self.definition("k", "price > 0.5")), Self.body("03", Self.definition(nil, "price > 03.0")),
            Self.body("09", Self.definition("removed since")),
        ]
        let listed = try answer(list, 200, SubscriptionList(subscriptions: old, next: nil))
        #expect(!listed.contains { if case .found = $0 { true } else { false } }, "no others were requested")
        #expect(!Self.events(listed).contains(.unsubscribed))
        var asked: [ClientFrame.Request] = Self.requests(listed)
        while let last = asked.last, asked.count < 5 {
            let body =
                last.method == "POST"
                ? Self.body("11", Self.definition(nil, "price > 01.0"))
                : Self.body("02", Self.definition("k", "price > 02.0"))
            let more = Self.requests(try answer(last, last.method == "POST" ? 201 : 200, body))
            if more.isEmpty { break }
            asked += more
        }
        let said = asked.map { "\($0.method) \($0.path.split(separator: "/").last ?? "")" }.sorted()
        #expect(said == ["PATCH 02", "POST subscriptions"])
        #expect(numbers.map { machine.entries[$0]?.id } == ["11", "02", "03"])
        #expect(numbers.map { machine.entries[$0]?.status } == [.subscribed, .subscribed, .subscribed])
        _ = machine.disconnected()
        #expect(machine.connected(version: 3).isEmpty, "it is all there again")
    }

    @Test mutating func `an object of the app replaces the one that was found`() throws {
        _ = machine.requested()
        let list = try Self.request(machine.connected(version: 3))
        _ = try answer(list, 200, SubscriptionList(subscriptions: [Self.body("01", Self.definition("k"))], next: nil))
        let (number, actions) = machine.subscribed(Self.definition("k"))
        let taken = try answer(try Self.request(actions), 200, Self.body("01", Self.definition("k"), status: "triggered"))
        #expect(machine.entries.keys.sorted() == [number])
        let events = Self.events(taken)
        #expect(events == [.statusChanged(.unknown), .statusChanged(.triggered), .subscribed, .triggered])
    }

    @Test mutating func `a subscription is removed before it is sent, and after`() throws {
        let (early, _) = machine.subscribed(Self.definition("early"))
        #expect(Self.events(machine.unsubscribed(early)) == [.statusChanged(.unknown), .unsubscribed])
        #expect(machine.connected(version: 3).isEmpty)
        let (number, actions) = machine.subscribed(Self.definition("k"))
        _ = try answer(try Self.request(actions), 201, Self.body("01", Self.definition("k")))
        let refused = try Self.request(machine.unsubscribed(number))
        #expect(refused.method == "DELETE" && refused.path.hasSuffix("/01"))
        let error = PushError(.subscriptionRefused, "field_invalid: no")
        #expect(Self.events(try answer(refused, 400)) == [.unsubscriptionFailed(error)])
        let removed = try Self.request(machine.unsubscribed(number))
        #expect(Self.events(try answer(removed, 404)) == [.statusChanged(.unknown), .unsubscribed])
        #expect(machine.entries.isEmpty)
    }

    @Test mutating func `a subscription is removed while it is being created`() throws {
        _ = machine.connected(version: 3)
        let (number, actions) = machine.subscribed(Self.definition("k"))
        let made = try Self.request(actions)
        #expect(Self.events(machine.unsubscribed(number)).isEmpty)
        let removed = try Self.request(try answer(made, 201, Self.body("01", Self.definition("k"))))
        #expect(removed.method == "DELETE" && removed.path.hasSuffix("/01"))
        #expect(Self.events(try answer(removed, 204)) == [.statusChanged(.unknown), .unsubscribed])
        #expect(machine.entries.isEmpty)
    }

    @Test mutating func `requests at a sign-out have no answer`() throws {
        _ = machine.connected(version: 3)
        let (_, actions) = machine.subscribed(Self.definition("k"))
        let made = try Self.request(actions)
        _ = machine.signedOut()
        #expect(machine.entries.isEmpty)
        // The next request does not wait for it.
        #expect(Self.requests(machine.subscribed(Self.definition("l")).actions).count == 1)
        #expect(try answer(made, 201, Self.body("01", Self.definition("k"))).isEmpty)
    }

    @Test mutating func `a declared subscription that is removed is also removed on the server, at any time`() throws {
        let (numbers, _) = machine.declared([Self.definition("ä b"), Self.definition("c")])
        let compare = try Self.request(machine.connected(version: 3))
        #expect(Self.requests(machine.unsubscribed(numbers[0])).isEmpty)
        let list = try Self.request(
            machine.answered(.init(id: compare.id, status: 200, body: Array(#"{"wanted":[],"removed":0}"#.utf8))))
        #expect(list.method == "GET")
        let bodies = [Self.body("0a", Self.definition("ä b")), Self.body("0c", Self.definition("c"))]
        let listed = try answer(list, 200, SubscriptionList(subscriptions: bodies, next: nil))
        let removed = try Self.request(listed)
        #expect(removed.method == "DELETE" && removed.path.hasSuffix("/0a"))
        #expect(Self.events(try answer(removed, 204)) == [.statusChanged(.unknown), .unsubscribed])
        #expect(machine.entries.keys.sorted() == [numbers[1]])
        // Without a connection it may be there from an earlier run.
        _ = machine.disconnected()
        let (again, _) = machine.declared([Self.definition("ä b")])
        #expect(machine.unsubscribed(again[0]).isEmpty && machine.entries[again[0]]?.status == .active)
        var asked: [String] = []
        var actions = machine.connected(version: 3)
        while let request = Self.requests(actions).first {
            asked.append("\(request.method) \(request.path)")
            actions = machine.answered(
                .init(id: request.id, status: 200, body: Array(#"{"wanted":[],"removed":1,"subscriptions":[]}"#.utf8)))
        }
        #expect(asked.contains("DELETE /v1/device/subscriptions?key=%C3%A4%20b"), "\(asked)")
        #expect(machine.entries.isEmpty)
    }

    @Test mutating func `a set that is declared anew leaves no waiting subscription of the earlier one`() throws {
        let (first, _) = machine.declared([Self.definition("a")])
        let (second, actions) = machine.declared([Self.definition("b")])
        #expect(Self.events(actions) == [.statusChanged(.unknown), .unsubscribed, .statusChanged(.active)])
        #expect(machine.entries[first[0]] == nil && machine.entries[second[0]]?.status == .active)
        #expect(actions.last == .connect)
    }

    @Test mutating func `requests after a declared set are sent after its puts`() throws {
        _ = machine.declared([Self.definition("a")])
        let compare = try Self.request(machine.connected(version: 3))
        _ = machine.unsubscribedMany(.all)
        let put = try Self.request(
            machine.answered(.init(id: compare.id, status: 200, body: Array(#"{"wanted":["a"],"removed":0}"#.utf8))))
        #expect(put.method == "POST")
        let list = try Self.request(try answer(put, 201, Self.body("0a", Self.definition("a"))))
        #expect(list.method == "GET")
        let removed = try Self.request(
            try answer(
                list, 200, SubscriptionList(subscriptions: [Self.body("0a", Self.definition("a"))], next: nil)))
        #expect(removed.method == "DELETE" && removed.path == "/v1/device/subscriptions")
    }

    @Test mutating func `signing out leaves nothing that another would get`() {
        _ = machine.declared([Self.definition("a")])
        _ = machine.subscribed(Self.definition("b"))
        let gone = machine.signedOut()
        #expect(machine.entries.isEmpty && Self.events(gone).count { $0 == .unsubscribed } == 2)
        #expect(machine.connected(version: 3).isEmpty)
    }

    @Test mutating func `a definition larger than a frame is refused and not sent`() throws {
        let definitions = (0..<1000).map { Self.definition("\(String(repeating: "k", count: 60))\($0)") }
        _ = machine.declared(definitions)
        let refused = machine.connected(version: 3)
        #expect(Self.requests(refused).isEmpty)
        let failed = Self.events(refused).count { if case .subscriptionFailed = $0 { true } else { false } }
        #expect(failed == 1000 && machine.entries.isEmpty)
    }

    @Test mutating func `a change of a subscription without a name is sent when it has one`() throws {
        let (numbers, _) = machine.declared([Self.definition("a")])
        let compare = try Self.request(machine.connected(version: 3))
        _ = machine.changed(numbers[0], .trigger, Self.definition("a", "price > 9.0"))
        let list = try Self.request(
            machine.answered(.init(id: compare.id, status: 200, body: Array(#"{"wanted":[],"removed":0}"#.utf8))))
        let listed = try answer(
            list, 200, SubscriptionList(subscriptions: [Self.body("0a", Self.definition("a"))], next: nil))
        let change = try Self.request(listed)
        #expect(change.method == "PATCH")
        #expect(JSONValue(parsing: change.body)?["trigger"] == .string("price > 9.0"))
    }

    @Test mutating func `a list that cannot continue begins anew`() throws {
        _ = machine.requested()
        let list = try Self.request(machine.connected(version: 3))
        let next = try Self.request(
            try answer(list, 200, SubscriptionList(subscriptions: [Self.body("01", Self.definition("x"))], next: "01")))
        let again = try Self.request(try answer(next, 404))
        #expect(again.path == list.path)
        #expect(try answer(again, 200, SubscriptionList(subscriptions: [], next: nil)).contains(.listed))
        #expect(machine.entries.isEmpty)
        #expect(try Self.request(machine.refreshed()).method == "GET")
    }

    @Test mutating func `a request that could create a duplicate is not repeated after a fault of the server`() throws {
        _ = machine.subscribed(Self.definition(nil))
        let put = try Self.request(machine.connected(version: 3))
        let failed = try answer(put, 503)
        #expect(Self.events(failed).last == .statusChanged(.unknown) && machine.entries.isEmpty)
    }

    @Test mutating func `a declared subscription replaces one with its key and other content, once`() throws {
        let (numbers, _) = machine.declared([Self.definition("a")])
        let compare = try Self.request(machine.connected(version: 3))
        let wanted = Array(#"{"wanted":["a"],"removed":0}"#.utf8)
        let put = try Self.request(machine.answered(.init(id: compare.id, status: 200, body: wanted)))
        let frozen = ["detail": "frozen", "code": "subscription_frozen"]
        let remove = try Self.request(try answer(put, 409, frozen))
        #expect(remove.method == "DELETE" && remove.path == "/v1/device/subscriptions?key=a")
        let again = try Self.request(try answer(remove, 200, ["removed": 1]))
        #expect(again.method == "POST" && again.body == put.body)
        let failed = try answer(again, 409, frozen)
        #expect(Self.events(failed).last == .statusChanged(.unknown), "not without end")
        #expect(machine.entries[numbers[0]] == nil)
        // A subscription that the app created itself is refused.
        _ = machine.subscribed(Self.definition("b"))
        _ = machine.disconnected()
        var actions = machine.connected(version: 3)
        while let request = Self.requests(actions).first, request.method != "POST" {
            actions =
                request.method == "PUT"
                ? machine.answered(.init(id: request.id, status: 200, body: Array(#"{"wanted":[],"removed":0}"#.utf8)))
                : try answer(request, 200, SubscriptionList(subscriptions: [], next: nil))
        }
        let refused = try answer(try Self.request(actions), 409, frozen)
        #expect(Self.events(refused).contains { if case .subscriptionFailed = $0 { true } else { false } })
    }

    @Test mutating func `a subscription whose approval hook does not answer delays no others`() throws {
        _ = machine.subscribed(Self.definition("a"))
        let put = try Self.request(machine.connected(version: 3))
        let (other, _) = machine.subscribed(Self.definition("b"))
        #expect(try answer(put, 503).contains(.wait(seconds: 5)))
        let next = try Self.request(machine.timePassed())
        #expect(JSONValue(parsing: next.body)?["key"] == .string("b"))
        let again = try Self.request(try answer(next, 201, Self.body("0b", Self.definition("b"))))
        #expect(JSONValue(parsing: again.body)?["key"] == .string("a") && machine.entries[other]?.status == .subscribed)
    }

    @Test mutating func `the response of the app's backend is reported literally`() throws {
        _ = machine.subscribed(Self.definition("a"))
        let put = try Self.request(machine.connected(version: 3))
        let refused = try answer(put, 403, ["detail": "d", "code": "vetoed", "appCode": "not-this-one"])
        let errors = Self.events(refused).compactMap { event -> PushError? in
            if case .subscriptionFailed(let error) = event { error } else { nil }
        }
        #expect(errors.map(\.appCode) == ["not-this-one"] && errors.map(\.serverCode) == ["vetoed"])
    }

    @Test mutating func `a lost device loses all but its declared subscriptions, which are declared again`() throws {
        let (numbers, _) = machine.declared([Self.definition("a")])
        let compare = try Self.request(machine.connected(version: 3))
        let put = try Self.request(
            machine.answered(.init(id: compare.id, status: 200, body: Array(#"{"wanted":["a"],"removed":0}"#.utf8))))
        _ = try answer(put, 201, Self.body("0a", Self.definition("a")))
        _ = machine.disconnected()
        let (loose, _) = machine.subscribed(Self.definition("loose"))
        _ = machine.deviceLost()
        #expect(machine.entries[numbers[0]]?.status == .active && machine.entries[numbers[0]]?.id == nil)
        #expect(machine.entries[loose]?.status == .active, "it was not sent yet")
        var asked: [String] = []
        var actions = machine.connected(version: 3)
        while let request = Self.requests(actions).first {
            asked.append(request.method)
            switch request.method {
            case "PUT":
                actions = machine.answered(
                    .init(id: request.id, status: 200, body: Array(#"{"wanted":["a"],"removed":0}"#.utf8)))
            case "POST":
                let isLoose = JSONValue(parsing: request.body)?["key"] == .string("loose")
                actions = try answer(
                    request, 201,
                    Self.body(isLoose ? "0e" : "0a", Self.definition(isLoose ? "loose" : "a")))
            default:
                actions = try answer(
                    request, 200,
                    SubscriptionList(
                        subscriptions: [Self.body("0a", Self.definition("a")), Self.body("0e", Self.definition("loose"))],
                        next: nil))
            }
        }
        #expect(Set(asked) == ["POST", "PUT", "GET"])
        #expect(machine.entries.values.allSatisfy { $0.status == .subscribed })
    }

    @Test mutating func `unknown terms of a newer server are treated as unknown`() throws {
        _ = machine.requested()
        let list = try Self.request(machine.connected(version: 3))
        let body = #"""
            {"subscriptions":[{"id":"01","items":["i"],"fields":["f"],"mode":"command","format":{"title":"t","hologram":7},
            "policy":"sometimes","tags":[],"status":"dreaming","statusAt":"2026-01-01T00:00:00.000Z",
            "createdAt":"2026-01-01T00:00:00.000Z","hash":"x","mood":"good"}]}
            """#
        _ = machine.answered(.init(id: list.id, status: 200, body: Array(body.utf8)))
        let entry = try #require(machine.entries.values.first)
        #expect(entry.definition.mode == nil && entry.definition.policy == .unknown)
        #expect(entry.definition.format.jsonText.contains("hologram"))
        #expect(entry.status == .subscribed)
    }
}

struct NotificationSubscriptionTests {
    @Test func `a format is encoded as the server reads it, in any order of its calls`() throws {
        var format = NotificationFormat(title: "${item}", body: "b")
        format.badge = .automatic
        format.sound = "default"
        format.custom = ["a": .list([.integer(1), .text("${price}"), .flag(true), .number(0.5), .null])]
        format.lifetime = .seconds(60)
        format.interruptionLevel = .timeSensitive
        format.isMutableContent = true
        format.relevance = 0.5
        format.considersPower = true
        format.titleKey = nil
        var other = NotificationFormat()
        other.considersPower = true
        other.relevance = 0.5
        other.custom = format.custom
        other.isMutableContent = true
        other.interruptionLevel = .timeSensitive
        other.lifetime = .seconds(60)
        other.sound = "default"
        other.badge = .automatic
        other.body = "b"
        other.title = "${item}"
        #expect(format == other && format.jsonText == other.jsonText)
        _ = try CarillonWire.NotificationFormat(format.json)
        let back = try #require(NotificationFormat(jsonText: format.jsonText))
        #expect(back == format && back.badge == .automatic && back.lifetime == .seconds(60) && back.custom == format.custom)
        other.setCriticalSound("siren", volume: 0.5)
        #expect(other.sound == "siren")
        _ = try CarillonWire.NotificationFormat(other.json)
        #expect(NotificationFormat(jsonText: "[]") == nil)
    }

    @Test(arguments: [
        ("price >", PushError.Code.triggerInvalid, "1:8"), ("prise > 1.0", .triggerInvalid, "prise"),
        ("1 + 1", .triggerInvalid, "bool"),
    ])
    func `a trigger is read before it is sent`(trigger: String, code: PushError.Code, word: String) throws {
        let subscriptions = NotificationSubscriptions { _ in
        } notify: { _ in
        }
        let wrong = NotificationSubscription(
            items: ["i"], fields: ["price"], format: NotificationFormat(title: "t"), trigger: trigger)
        let error = #expect(throws: PushError.self) { try subscriptions.subscribe(wrong) }
        #expect(error?.code == code && error?.message.contains(word) == true, "\(String(describing: error))")
        #expect(wrong.status == .unknown)
    }

    @Test func `invalid calls are refused at once`() throws {
        let subscriptions = NotificationSubscriptions { _ in
        } notify: { _ in
        }
        func make(_ key: String?, _ format: NotificationFormat = NotificationFormat(title: "t")) -> NotificationSubscription
        {
            NotificationSubscription(items: ["i"], fields: ["price"], format: format, key: key)
        }
        #expect(throws: PushError.self) { try subscriptions.subscribe(make("k", NotificationFormat())) }
        let one = make("k")
        try subscriptions.subscribe(one)
        #expect(one.status == .active && one.isActive && !one.isSubscribed)
        #expect(throws: PushError.self) { try subscriptions.subscribe(one) }
        #expect(throws: PushError.self) { try subscriptions.unsubscribe(make("other")) }
        #expect(throws: PushError.self) { try subscriptions.declare([make("a"), make("a")]) }
        #expect(throws: PushError.self) { try subscriptions.declare([make(nil)]) }
        #expect(throws: PushError.self) { try subscriptions.change(one, trigger: "price >") }
        #expect(one.triggerExpression == nil)
        try subscriptions.change(one, trigger: "price > 5.0")
        #expect(one.triggerExpression == "price > 5.0")
        let copy = NotificationSubscription(copying: one)
        #expect(copy.key == "k" && copy.status == .unknown && copy.subscriptionID == nil)
    }
}

struct SubscriptionFiringTests {
    private static let frame = FiredFrame(
        version: "v",
        body: Array(
            #"{"subscription":"00000000000000000000000000000001","key":"k","item":"i","at":5,"notification":{"title":"t"}}"#
                .utf8))

    @Test func `a firing is reported once, and acknowledged when the app is done with it, also without a connection`() throws
    {
        var session = ClientSessionTests.live()
        let firing = try #require(SubscriptionFiring(Self.frame))
        #expect(
            firing.notification.title == "t" && firing.key == "k" && firing.updatedAt == Date(timeIntervalSince1970: 0.005))
        #expect(ClientSessionTests.receive(.fired(Self.frame), &session) == [.notifySubscriptions(.fired(firing))])
        let answer = MessageAnswer(id: "v", code: 100)
        let stored: [SessionAction] = [.write(.saveAnswer(answer)), .write(.saveFiringStarts(id: "v", 0))]
        #expect(session.firingHandled(firing) == stored + [.send(answer.frame)])
        #expect(ClientSessionTests.receive(.fired(Self.frame), &session, handled: 100) == [.send(answer.frame)])
        _ = session.stopped()
        #expect(session.firingHandled(firing) == stored)
        #expect(SubscriptionFiring(FiredFrame(version: "v", body: Array("{}".utf8))) == nil)
        var other = ClientSessionTests.live()
        let strange = FiredFrame(version: "w", body: Array("{}".utf8))
        #expect(ClientSessionTests.receive(.fired(strange), &other) == [.send(.nack(version: "w", code: 303))])
    }

    @Test(.timeLimit(.minutes(5))) func `firings wait for the app, one at a time, and go with their connection`()
        async throws
    {
        let handled = Mutex<[String]>([])
        let queue = FiringQueue(.init(handled: { entry in handled.withLock { $0.append(entry.id) } }))
        func firing(_ id: String) throws -> SubscriptionFiring {
            try #require(SubscriptionFiring(FiredFrame(version: id, body: Self.frame.body)))
        }
        queue.add(try firing("lost"))
        #expect(!queue.add(try firing("lost")))
        queue.disconnected()
        queue.add(try firing("a"))
        queue.add(try firing("b"))
        var reader = SubscriptionFirings(queue: queue).makeAsyncIterator()
        #expect(await reader.next()?.id == "a")
        #expect(!queue.add(try firing("a")), "the app has it")
        #expect(handled.withLock { $0 } == [])
        #expect(await reader.next()?.id == "b")
        #expect(handled.withLock { $0 } == ["a"])
        let waiting = Task { await queue.next()?.id }
        let cancelled = Task { await queue.next()?.id }
        cancelled.cancel()
        #expect(await cancelled.value == nil)
        queue.add(try firing("c"))
        #expect(await waiting.value == "c")
        let last = Task { await queue.next()?.id }
        while !queue.hasReader { await Task.yield() }
        queue.endIterations()
        #expect(await last.value == nil)
    }
}
