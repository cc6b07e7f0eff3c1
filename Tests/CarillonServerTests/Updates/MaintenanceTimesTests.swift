import CarillonBasics
import CarillonCore
import CarillonWire
import HTTPTypes
import Testing

/// The times of a maintenance in the frames for devices.
@Suite(.timeLimit(.minutes(5)))
struct MaintenanceTimesTests {
    @Test func `a frame contains the seconds until a maintenance begins and ends, counted from its writing`()
        async throws
    {
        let world = try await UpdateWorld()
        let now = world.now.milliseconds
        let (from, until) = (Timestamp3339.text(now + 600_000), Timestamp3339.text(now + 2_400_000))
        try await world.publish("status", #"{"status":"maintenance","from":"\#(from)","until":"\#(until)"}"#)
        func first(_ answer: RouteFixture.Answer) -> JSONValue? {
            guard case .array(let envelopes)? = answer.json?["envelopes"] else { return nil }
            return envelopes.first { $0["messageType"] == .string("update") }
        }
        let early = first(try await world.ask())
        #expect(early?["startsIn"] == .integer(600) && early?["endsIn"] == .integer(2400))
        #expect(early?["update"]?["payload"]?["from"] == .string(from))
        world.advance(seconds: 900)
        let late = first(try await world.ask(try await world.device()))
        #expect(late?["startsIn"] == .integer(-300) && late?["endsIn"] == .integer(1500))
        // The same by the poll for everything.
        let other = try await world.device()
        _ = try await world.ask(other, #""max":0"#)
        let polled = first(
            try await world.routes.request(.get, "/v1/inbox?carillon=5", key: other.credential))
        #expect(polled?["endsIn"] == .integer(1500))
    }
}
