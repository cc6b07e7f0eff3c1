import CarillonBasics
import CarillonCore
import CarillonWire
import Foundation
import HTTPTypes
import TestSupport
import Testing

@testable import CarillonServer

/// The description that a device reports, and its use by an operator and another device.
@Suite(.timeLimit(.minutes(5)))
struct DeviceProfileTests {
    private static let full = """
        {"platform":"apple","pushToken":"ABcd01","environment":"sandbox","appVersion":"1.2","locale":"de-AT",
        "timeZone":"Europe/Vienna","parameters":{"plan":"gold","level":7}}
        """

    private func json(_ answer: RouteFixture.Answer) throws -> JSONValue {
        try #require(JSONValue(parsing: Array(answer.body)))
    }

    private func put(_ routes: RouteFixture, _ credential: String, _ body: String) async throws -> JSONValue {
        let answer = try await routes.request(.put, "/v1/device", key: credential, body)
        #expect(answer.status == 200, "\(String(decoding: answer.body, as: UTF8.self))")
        return try json(answer)
    }

    @Test func `a device reports its whole description, and the token is not shown to anybody`() async throws {
        let routes = try await RouteFixture()
        let (id, credential, _) = try await routes.device()
        let body = try await put(routes, credential, Self.full)
        #expect(body["status"] == .string("registered"))
        #expect(body["push"]?["environment"] == .string("sandbox"))
        #expect(body["parameters"]?["plan"] == .string("gold"))
        for answer in [
            try await routes.request(.get, "/v1/device", key: credential),
            try await routes.request(.get, "/v1/devices/\(id)", key: routes.admin),
        ] {
            #expect(try json(answer) == body)
            #expect(!String(decoding: answer.body, as: UTF8.self).lowercased().contains("abcd01"))
        }
        let less = try await put(routes, credential, #"{"locale":"en"}"#)
        #expect(less["push"] == nil && less["parameters"] == nil && less["locale"] == .string("en"))
    }

    @Test func `a patch removes members that are null, and keeps absent ones`() async throws {
        let routes = try await RouteFixture()
        let (_, credential, _) = try await routes.device()
        _ = try await put(routes, credential, Self.full)
        func patch(_ body: String) async throws -> JSONValue {
            let answer = try await routes.request(.patch, "/v1/device", key: credential, body)
            #expect(answer.status == 200, "\(String(decoding: answer.body, as: UTF8.self))")
            return try json(answer)
        }
        let less = try await patch(#"{"locale":null,"parameters":{"plan":null,"beta":true}}"#)
        #expect(less["locale"] == nil && less["appVersion"] == .string("1.2"))
        #expect(less["parameters"]?["plan"] == nil && less["parameters"]?["level"] == .integer(7))
        #expect(less["parameters"]?["beta"] == .bool(true))
        #expect(try await patch(#"{"environment":"production"}"#)["push"]?["environment"] == .string("production"))
        #expect(try await patch(#"{"pushToken":null}"#)["push"] == nil)
        #expect(try await patch(#"{"parameters":null}"#)["parameters"] == nil)
        #expect(try await patch("{}")["appVersion"] == .string("1.2"))
    }

    @Test(arguments: [
        (#"{"platform":"apple","pushToken":""}"#, "push_token_invalid"),
        (#"{"platform":"apple","pushToken":"abc"}"#, "push_token_invalid"),
        (#"{"platform":"apple","pushToken":"<ab cd>"}"#, "push_token_invalid"),
        (#"{"platform":"apple","pushToken":"ab","previousToken":"a"}"#, "push_token_invalid"),
        (#"{"platform":"nokia","pushToken":"ab"}"#, "field_invalid"),
        (#"{"platform":"apple","pushToken":"ab","environment":"moon"}"#, "field_invalid"),
        (#"{"platform":"apple"}"#, "field_missing"), (#"{"pushToken":"ab"}"#, "field_missing"),
        (#"{"pushToken":null,"platform":"nokia"}"#, "field_invalid"),
        (#"{"pushToken":null,"environment":"moon"}"#, "field_invalid"),
        (#"{"platform":7,"pushToken":"ab"}"#, "field_invalid"), (#"{"locale":""}"#, "field_invalid"),
        (#"{"locale":"grün"}"#, "field_invalid"), (#"{"colour":"red"}"#, "field_unknown"),
        (#"{"locale":"de","locale":"en"}"#, "json_invalid"), ("[]", "json_invalid"), ("{", "json_invalid"),
        (#"{"parameters":[]}"#, "parameters_invalid"), (#"{"parameters":{"7up":1}}"#, "parameters_invalid"),
        (#"{"parameters":{"a":{"b":1}}}"#, "parameters_invalid"), (#"{"parameters":{"a":[1]}}"#, "parameters_invalid"),
        (#"{"parameters":{"a":1,"a":2}}"#, "parameters_invalid"),
    ])
    func `an invalid description is refused, and changes nothing`(body: String, code: String) async throws {
        let routes = try await RouteFixture()
        let (_, credential, key) = try await routes.device()
        _ = try await put(routes, credential, Self.full)
        let before = try await routes.request(.get, "/v1/device", key: credential).body
        let refused = try await routes.request(.put, "/v1/device", key: credential, body)
        #expect(refused.status == 400 && refused.code == code)
        #expect(try await routes.request(.get, "/v1/device", key: credential).body == before)
        let registering = try await routes.request(.post, "/v1/devices", key: key, body)
        #expect(registering.status == 400 && registering.code == code)
        let devices = try await routes.request(.get, "/v1/apps/com.example.app/devices", key: routes.admin)
        guard case .array(let list)? = try json(devices)["devices"] else { throw CancellationError() }
        #expect(list.count == 1)
    }

    @Test func `a device that presents a token receives it, and another one can take it back`() async throws {
        let routes = try await RouteFixture()
        let (_, credential, key) = try await routes.device()
        _ = try await put(routes, credential, Self.full)
        let thief = try await routes.request(.post, "/v1/devices", key: key, Self.full)
        #expect(thief.status == 201)
        let loser = try json(try await routes.request(.get, "/v1/device", key: credential))
        #expect(loser["status"] == .string("suspended") && loser["reason"] == .string("token_taken"))
        #expect(loser["push"] == nil)
        let patched = try await routes.request(.patch, "/v1/device", key: credential, #"{"locale":"en"}"#)
        #expect(try json(patched)["reason"] == .string("token_taken"))
        #expect(try await put(routes, credential, Self.full)["status"] == .string("registered"))
        let other = try json(try await routes.request(.get, "/v1/device", key: thief["credential"]))
        #expect(other["reason"] == .string("token_taken"))
    }

    @Test func `a device that lost its token reports only the next one, and its platform and environment stay`() async throws
    {
        let routes = try await RouteFixture()
        let (_, credential, key) = try await routes.device()
        func patch(_ body: String, isRefused: Bool = false) async throws -> JSONValue {
            let answer = try await routes.request(.patch, "/v1/device", key: credential, body)
            #expect(answer.status == (isRefused ? 400 : 200), "\(String(decoding: answer.body, as: UTF8.self))")
            return try json(answer)
        }
        #expect(try await patch(#"{"pushToken":"ab"}"#, isRefused: true)["code"] == .string("field_missing"))
        #expect(try await patch(#"{"environment":"sandbox"}"#, isRefused: true)["code"] == .string("field_missing"))
        _ = try await put(routes, credential, Self.full)
        #expect(try await routes.request(.post, "/v1/devices", key: key, Self.full).status == 201)
        let loser = try await patch(#"{"locale":"en"}"#)
        #expect(loser["reason"] == .string("token_taken") && loser["push"] == nil)
        let again = try await patch(#"{"pushToken":"abcd02"}"#)
        #expect(again["status"] == .string("registered"))
        #expect(again["push"]?["platform"] == .string("apple") && again["push"]?["environment"] == .string("sandbox"))
        // A device that removed its token keeps them as well, and can change them meanwhile.
        #expect(try await patch(#"{"pushToken":null}"#)["push"] == nil)
        #expect(try await patch(#"{"environment":"test"}"#)["push"] == nil)
        #expect(try await patch(#"{"pushToken":"abcd03"}"#)["push"]?["environment"] == .string("test"))
        // Its token is dead.
        let device = try await routes.domain.devices.authenticate(bearer: credential)
        let now = routes.domain.time.now()
        let current = try #require(try await routes.store.registration(of: device.serial))
        let dead = try #require(RegistrationRules.suspend(current, because: .tokenDead, at: now))
        let stored = try await routes.store.changeRegistration(of: device.serial, at: now) { _ in .becomes(dead) }
        #expect(try stored?.get().registration.status == .suspended(.tokenDead))
        let alive = try await patch(#"{"pushToken":"abcd04"}"#)
        #expect(alive["status"] == .string("registered") && alive["push"]?["environment"] == .string("test"))
        // Removed members are removed, and a complete description replaces it.
        _ = try await patch(#"{"pushToken":null,"platform":null}"#)
        #expect(try await patch(#"{"pushToken":"abcd05"}"#, isRefused: true)["code"] == .string("field_missing"))
        _ = try await put(routes, credential, Self.full)
        _ = try await patch(#"{"pushToken":null}"#)
        _ = try await put(routes, credential, #"{"locale":"en"}"#)
        #expect(try await patch(#"{"pushToken":"abcd06"}"#, isRefused: true)["code"] == .string("field_missing"))
    }

    @Test func `a token that moves back and forth stays where it is until tomorrow`() async throws {
        let routes = try await RouteFixture(time: TimeSource { Timestamp(milliseconds: 1_800_000_000_000) })
        let (_, one, key) = try await routes.device()
        let other = try await routes.request(.post, "/v1/devices", key: key)["credential"]
        var last = RouteFixture.Answer(status: 0, headers: [:], body: Data())
        for turn in 0...6 {
            last = try await routes.request(.put, "/v1/device", key: turn.isMultiple(of: 2) ? one : other, Self.full)
            if last.status != 200 {
                #expect(turn == 6)
                break
            }
        }
        #expect(last.status == 409 && last.code == "push_token_contested")
        #expect(last.headers[.retryAfter].flatMap(Int.init) ?? 0 > 0)
    }

    @Test func `a device that changes its mind without end is slowed down, and others are not`() async throws {
        var rateLimits = RateLimits.Settings()
        rateLimits.deviceRegistrations = Rate(perSecond: 1, burst: 40)
        let routes = try await RouteFixture(rateLimits)
        let (_, credential, key) = try await routes.device()
        let other = try await routes.request(.post, "/v1/devices", key: key)["credential"]
        var refused: RouteFixture.Answer?
        for turn in 0..<1000 where refused == nil {
            let body = #"{"parameters":{"turn":\#(turn)}}"#
            let answer = try await routes.request(.patch, "/v1/device", key: credential, body)
            if answer.status != 200 { refused = answer }
        }
        #expect(refused?.status == 429 && refused?.code == "rate_limited")
        #expect(try await routes.request(.patch, "/v1/device", key: other, "{}").status == 200)
    }

    @Test func `an operator suspends, and the device does not end it`() async throws {
        let routes = try await RouteFixture()
        let (id, credential, _) = try await routes.device()
        _ = try await put(routes, credential, Self.full)
        for _ in 1...2 {
            let suspended = try await routes.request(.post, "/v1/devices/\(id)/suspend", key: routes.admin)
            #expect(try suspended.status == 200 && json(suspended)["reason"] == .string("operator"))
        }
        #expect(try await put(routes, credential, Self.full)["status"] == .string("suspended"))
        let resumed = try await routes.request(.post, "/v1/devices/\(id)/resume", key: routes.admin)
        #expect(try json(resumed)["status"] == .string("registered") && json(resumed)["reason"] == nil)
        #expect(try await routes.request(.post, "/v1/devices/\(id)/suspend", key: credential).status == 401)
        let unknown = String(repeating: "0", count: 32)
        #expect(
            try await routes.request(.post, "/v1/devices/\(unknown)/suspend", key: routes.admin).code
                == "device_unknown")
    }

    @Test func `a device receives its suspension and its end, if it supports such events`() async throws {
        let routes = try await RouteFixture()
        let (id, credential, _) = try await routes.device()
        #expect(try await routes.request(.post, "/v1/devices/\(id)/suspend", key: routes.admin).status == 200)
        let known = try await routes.request(.get, "/v1/inbox?carillon=2", key: credential)
        guard case .array(let envelopes)? = known.json?["envelopes"] else { throw NoInbox() }
        try #require(envelopes.count == 1)
        #expect(envelopes[0]["messageType"] == .string("device") && envelopes[0]["event"] == .string("suspended"))
        #expect(envelopes[0]["reason"] == .string("operator"))
        guard case .integer(let at)? = envelopes[0]["at"] else { throw NoInbox() }
        #expect(abs(Int64(at) - routes.domain.time.now().milliseconds) < 60_000)
        // The newest one replaces the waiting one.
        #expect(try await routes.request(.post, "/v1/devices/\(id)/resume", key: routes.admin).status == 200)
        let next = try await routes.request(.get, "/v1/inbox?carillon=2", key: credential)
        guard case .array(let later)? = next.json?["envelopes"] else { throw NoInbox() }
        #expect(later.map { $0["event"] } == [.string("registered")])
        // A client that does not know it does not receive it, and it does not wait any more.
        let old = try await routes.request(.get, "/v1/inbox", key: credential)
        #expect(old.json?["envelopes"] == .array([]))
        try await eventually {
            try await routes.request(.get, "/v1/inbox?carillon=2", key: credential).json?["envelopes"] == .array([])
        }
        #expect(
            try await routes.request(.get, "/v1/inbox?carillon=\(CarillonVersion.ofExtension + 1)", key: credential).status
                == 400)
    }

    private struct NoInbox: Error {}

    @Test func `a credential is renewed with a secret of the device's own, and the one before is refused`() async throws {
        let routes = try await RouteFixture()
        let (id, credential, _) = try await routes.device()
        let secret = String(repeating: "Ab-_", count: 8)
        for body in [
            #"{"secret":"short"}"#, #"{"secret":"\#(String(repeating: "!", count: 32))"}"#, "{}", #"{"other":"x"}"#,
        ] {
            #expect(try await routes.request(.put, "/v1/device/credential", key: credential, body).status == 400)
        }
        let body = #"{"secret":"\#(secret)"}"#
        #expect(try await routes.request(.put, "/v1/device/credential", key: credential, body).status == 204)
        #expect(try await routes.request(.get, "/v1/device", key: credential).status == 401)
        #expect(try await routes.request(.put, "/v1/device/credential", key: credential, body).status == 401)
        #expect(try await routes.request(.get, "/v1/device", key: "\(id).\(secret)")["id"] == id)
    }

    @Test func `an operator's list has filters, and refuses unknown ones`() async throws {
        let routes = try await RouteFixture()
        let (id, credential, key) = try await routes.device()
        _ = try await routes.request(.post, "/v1/devices", key: key)
        _ = try await put(routes, credential, Self.full)
        #expect(try await routes.request(.post, "/v1/devices/\(id)/suspend", key: routes.admin).status == 200)
        func ids(_ query: String) async throws -> [JSONValue?] {
            let list = try await routes.request(.get, "/v1/apps/com.example.app/devices?\(query)", key: routes.admin)
            guard case .array(let devices)? = list.json?["devices"] else { return [] }
            return devices.map { $0["id"] }
        }
        #expect(try await ids("").count == 2)
        #expect(try await ids("status=suspended") == [.string(id)])
        #expect(try await ids("status=registered").count == 1)
        #expect(try await ids("platform=apple") == [.string(id)])
        #expect(try await ids("platform=none&status=suspended").isEmpty)
        for query in ["status=dead", "platform=android"] {
            let answer = try await routes.request(.get, "/v1/apps/com.example.app/devices?\(query)", key: routes.admin)
            #expect(answer.status == 400 && answer.code == "parameter_invalid")
        }
    }
}
