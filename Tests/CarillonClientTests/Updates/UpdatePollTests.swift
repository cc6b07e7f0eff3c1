import CarillonBasics
import CarillonWire
import Foundation
import Testing

@testable import CarillonClient

struct UpdatePollTests {
    private func body(
        capacity: Int = 10, parameters: ParameterSet? = nil, results: [WaitingResult] = [], position: String? = nil
    ) throws -> JSONValue {
        let poll = UpdatePoll(
            profile: "p", kinds: ["popup", "content"], position: position, parameters: parameters, results: results,
            waitSeconds: 25, capacity: capacity)
        return try #require(JSONValue(parsing: Array(poll.body)))
    }

    @Test func `a poll contains the pending reports, and nothing else`() throws {
        let empty = try body()
        #expect(empty["protocol"] == .integer(1) && empty["only"] == .string("updates"))
        #expect(empty["kinds"] == .array([.string("content"), .string("popup")]))
        #expect(empty["wait"] == .integer(25) && empty["max"] == .integer(10) && empty["profile"] == .string("p"))
        for name in ["position", "parameters", "results"] { #expect(empty[name] == nil) }
        #expect(try body(capacity: 5000)["max"] == .integer(UpdatePoll.mostUpdates))
        let full = try body(capacity: 0, position: "x")
        #expect(full["max"] == .integer(0) && full["wait"] == .integer(0) && full["position"] == .string("x"))
        let said = try body(results: [WaitingResult(number: 1, json: .object([]))])
        #expect(said["results"] == .array([.object([])]))
    }

    @Test func `parameters have one revision in any order, and refused ones are absent`() throws {
        let here = UpdateParameter.location(latitude: 48.2, longitude: 16.4)
        let one = ParameterSet(["region": .text("north"), "place": here, "level": .integer(2)], at: 0)
        let same = ParameterSet(["level": .integer(2), "place": here, "region": .text("north")], at: 0)
        #expect(one == same)
        let near = UpdateParameter.location(latitude: 48.2012, longitude: 16.3989)
        #expect(
            ParameterSet(["region": .text("north"), "place": near, "level": .integer(2)], at: 0) == one,
            "a step is no change")
        let region = ["region": UpdateParameter.text("north")]
        for (hours, isSame) in [(11, true), (12, false)] as [(Int64, Bool)] {
            let later = ParameterSet(["region": .text("north"), "place": here, "level": .integer(2)], at: hours * 3_600_000)
            #expect((later.revision == one.revision) == isSame, "the location is reported again before a day is over")
            #expect(ParameterSet(region, at: hours * 3_600_000) == ParameterSet(region, at: 0))
        }
        let without = ParameterSet(["region": .text("north"), "level": .integer(2)], at: 0)
        #expect(without.revision != one.revision)
        #expect(without.values["place"] == nil)
        #expect(one.values["place"]?["latitude"] == .number(48.2))
        let json = try body(parameters: one)
        #expect(json["parameters"]?["revision"] == .string(one.revision))
        #expect(ParameterSet(["level": .integer(3)], at: 0).revision != ParameterSet(["level": .integer(4)], at: 0).revision)
        let moment = UpdateParameter.moment(Date(milliseconds: 1000))
        #expect(moment.json == .string("1970-01-01T00:00:01.000Z"))
        #expect(UpdateParameter.texts(["a"]).json == .array([.string("a")]))
        #expect(UpdateParameter.flag(true).json == .bool(true) && UpdateParameter.number(0.5).json == .number(0.5))
    }

    @Test func `an answer is read whole or not at all`() throws {
        let update = #"{"messageType":"update","version":"v","attempt":2,"entry":3,"update":{"id":"a"}}"#
        let text = #"{"envelopes":[{"messageType":"other"},\#(update)],"more":true,"position":"p"}"#
        let answer = try #require(UpdatePoll.answer(Array(text.utf8)))
        #expect(answer.more && answer.position == "p")
        #expect(answer.updates == [UpdateFrame(version: "v", attempt: 2, entry: 3, body: Array(#"{"id":"a"}"#.utf8))])
        for bad in [
            "", "{}", "[]", #"{"envelopes":[],"more":true}"#, #"{"envelopes":[],"position":"p"}"#,
            #"{"more":true,"position":"p"}"#, #"{"envelopes":[{"messageType":"update"}],"more":true,"position":"p"}"#,
            "<html>",
        ] { #expect(UpdatePoll.answer(Array(bad.utf8)) == nil, "\(bad)") }
    }

    @Test func `faults are distinguished`() {
        func kind(_ status: Int, _ code: ErrorCode, parameters: Bool = false) -> UpdateFailure.Kind? {
            let refusal = ServerRefusal(status: status, code: code, problem: ProblemDocument(Refusal(code, "why")))
            let fault = PollFault(
                refusal, retryAfter: .seconds(7), hadParameters: parameters, server: "host")
            guard case .failed(let failure, .seconds(7)) = fault else { return nil }
            #expect(failure.message.contains("host"))
            return failure.kind
        }
        #expect(kind(400, .positionInvalid) == nil)
        #expect(kind(400, .protocolUnsupported) == .incompatible)
        #expect(kind(404, .notFound) == .incompatible && kind(405, .methodNotAllowed) == .incompatible)
        #expect(kind(401, .credentialInvalid) == .refused && kind(403, .roleForbidden) == .refused)
        #expect(kind(429, .rateLimited) == .unreachable && kind(503, .overloaded) == .unreachable)
        #expect(kind(400, .fieldInvalid, parameters: true) == .parametersRefused)
        #expect(kind(400, .fieldInvalid) == .protocolViolated)
        #expect(kind(409, .profilesTooMany, parameters: true) == .protocolViolated)
    }

    @Test func `a failure is a warning again after a success, and not in a maintenance`() {
        var notes = FailureNotes()
        let failure = UpdateFailure(.unreachable, "why")
        #expect({ notes.isNew(failure, at: .now) }())
        #expect({ !notes.isNew(failure, at: .now) }())
        notes.succeeded()
        #expect({ notes.isNew(failure, at: .now) }())
        notes.maintenanceBegan()
        #expect({ !notes.isNew(UpdateFailure(.unreachable, "other"), at: .now) }())
    }

    @Test
    func `a repeated failure is reported once until a success, and an unreachable server is not reported in a maintenance`()
    {
        var notes = FailureNotes()
        let now = ContinuousClock.now
        func isNotified(_ kind: UpdateFailure.Kind, after: Duration = .zero) -> Bool { notes.failed(kind, at: now + after) }
        #expect(isNotified(.unreachable))
        #expect(!isNotified(.unreachable))
        #expect(isNotified(.refused), "another")
        #expect(isNotified(.unreachable))
        notes.succeeded()
        #expect(isNotified(.unreachable))
        notes.succeeded()
        notes.maintenanceEnded(at: now)
        #expect(isNotified(.unreachable), "there was none")
        notes.succeeded()
        notes.maintenanceBegan()
        #expect(!isNotified(.unreachable))
        #expect(isNotified(.incompatible), "that is no maintenance")
        notes.maintenanceEnded(at: now)
        #expect(!isNotified(.unreachable, after: .seconds(299)))
        #expect(isNotified(.unreachable, after: .seconds(300)))
    }
}
