import CarillonBasics
import CarillonWire
import Testing

/// The content of a frame about a maintenance when it is written.
struct MaintenanceFrameTests {
    private static let now: Int64 = 1_700_000_000_000

    private func frame(_ members: String, kind: String = "status", attempt: Int = 1) -> UpdateFrame {
        UpdateFrame(
            version: "v", attempt: attempt, entry: 1,
            body: Array(#"{"id":"m mm","kind":"\#(kind)","payload":{"status":"maintenance"\#(members)}}"#.utf8))
    }

    private func moment(_ milliseconds: Int64) -> String { Timestamp3339.text(Self.now + milliseconds) }

    @Test func `the seconds until a maintenance begins and ends are by the server's clock when it is written`() throws {
        let frame = frame(#","from":"\#(moment(600_000))","until":"\#(moment(2_400_400))""#)
        let written = frame.written(at: Self.now)
        #expect(written.startsIn == 600 && written.endsIn == 2400)
        #expect(frame.written(at: Self.now + 599_600).startsIn == 0)
        #expect(frame.written(at: Self.now + 900_000).startsIn == -300, "it has begun")
        let json = try #require(JSONValue(parsing: ServerFrame.update(written).text))
        #expect(json["startsIn"] == .integer(600) && json["endsIn"] == .integer(2400))
        #expect(json["update"]?["payload"]?["from"] == .string(moment(600_000)), "beside the published members")
        #expect(try ServerFrame.parse(ServerFrame.update(written).text) == .update(written))
        #expect(ServerFrame.update(frame).written(at: Self.now) == .update(written))
    }

    @Test func `only set members of a maintenance are sent`() {
        #expect(frame("").written(at: Self.now) == frame(""))
        let open = frame(#","from":"\#(moment(1000))""#).written(at: Self.now)
        #expect(open.startsIn == 1 && open.endsIn == nil)
        let ends = frame(#","until":"\#(moment(1000))""#).written(at: Self.now)
        #expect(ends.startsIn == nil && ends.endsIn == 1)
        for other in [
            frame(#","from":"\#(moment(1000))""#, kind: "com.example.own"),
            frame(#","from":"\#(moment(1000))""#, attempt: 0),
            UpdateFrame(
                version: "v", attempt: 1, entry: 1, body: Array(#"{"kind":"status","payload":{"status":"over"}}"#.utf8)),
        ] { #expect(other.written(at: Self.now) == other) }
    }
}
