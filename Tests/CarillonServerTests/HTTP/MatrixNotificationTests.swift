import CarillonWire
import TestSupport
import Testing

@testable import CarillonServer

struct MatrixNotificationTests {
    private func parse(_ text: String) throws -> [MatrixNotification.Device] { try read(text).devices }

    private static let addresses = PublicAddresses(base: "https://push.example.com")

    private func read(_ text: String) throws -> MatrixNotification {
        try MatrixNotification(parsing: Array(text.utf8), token: Self.addresses.token(ofEndpoint:))
    }

    private func messages(_ text: String) throws -> [MatrixNotification.Message] {
        let notification = try read(text)
        return notification.devices.map { notification.message(for: $0) }
    }

    @Test func `each device gets its own entry, and all others unchanged`() throws {
        let text =
            #"{ "notification" : {"counts":{"unread":2.50},"devices": [ {"pushkey":"a", "x":1e2} ,{"pushkey":"b"}], "z":"\u00e9" } }"#
        #expect(try parse(text).map(\.pushkeys) == [["a"], ["b"]])
        let expected = [
            #"{ "notification" : {"counts":{"unread":2.50},"devices": [{"pushkey":"a", "x":1e2}], "z":"\u00e9" } }"#,
            #"{ "notification" : {"counts":{"unread":2.50},"devices": [{"pushkey":"b"}], "z":"\u00e9" } }"#,
        ]
        #expect(try messages(text) == expected.map { .whole(Array($0.utf8)) })
    }

    @Test func `a repeated key counts once, in any notation`() throws {
        let again = #"{"pushkey":"a"},{"pushkey":"\u0061","app_id":"x"}"#
        let entries = Array(repeating: again, count: 39).joined(separator: ",")
        let text = #"{"notification":{"devices":[\#(entries)]}}"#
        #expect(try parse(text).map(\.pushkeys) == [["a"]])
        #expect(try messages(text) == [.whole(Array(#"{"notification":{"devices":[{"pushkey":"a"}]}}"#.utf8))])
    }

    // MARK: Notifications that are too large

    /// A notification of exactly the given number of bytes for the device "a", most of them in one member.
    private static func notification(of bytes: Int, in member: String) -> String {
        func text(_ pad: String) -> String {
            #"{"notification":{"event_id":"$1","\#(member)":"\#(pad)","devices":[{"pushkey":"a"}]}}"#
        }
        return text(String(repeating: "x", count: bytes - text("").utf8.count))
    }

    @Test func `4,096 bytes are sent unchanged, and one more loses its content`() throws {
        let fitting = Self.notification(of: 4096, in: "content")
        #expect(try messages(fitting) == [.whole(Array(fitting.utf8))])
        let shortened = #"{"notification":{"event_id":"$1","devices":[{"pushkey":"a"}]}}"#
        #expect(
            try messages(Self.notification(of: 4097, in: "content")) == [.shortened(Array(shortened.utf8))])
    }

    @Test func `the size counts for each device by itself`() throws {
        let long = String(repeating: "x", count: 3000)
        let text =
            #"{"notification":{"content":"\#(long)","devices":[{"pushkey":"a","x":"\#(long)"},{"pushkey":"b"}]},"z":1}"#
        #expect(
            try messages(text) == [
                .shortened(Array(#"{"notification":{"devices":[{"pushkey":"a","x":"\#(long)"}]},"z":1}"#.utf8)),
                .whole(Array(#"{"notification":{"content":"\#(long)","devices":[{"pushkey":"b"}]},"z":1}"#.utf8)),
            ])
    }

    @Test func `a notification that is too large without its content keeps only the identifiers of the event`() throws {
        let text = #"""
            {"a":1,"notification":{"content":{"b":[1]},"counts":{"unread":2.50},"room_name":"\#(String(repeating: "é", count: 2048))",
            "type":"m.room.message","prio":"high","room_id":"!r","event_id":"$1","sender":"@u","devices":[{"pushkey":"a", "x":1e2}]}}
            """#
        let expected = #"""
            {"notification":{"counts":{"unread":2.50},"type":"m.room.message","prio":"high","room_id":"!r","event_id":"$1","devices":[{"pushkey":"a", "x":1e2}]}}
            """#
        #expect(try messages(text) == [.shortened(Array(expected.utf8))])
    }

    @Test(arguments: [(4096, false), (4097, true)])
    func `a notification that is still too large is dropped`(bytes: Int, isTooLarge: Bool) throws {
        let text = Self.notification(of: bytes, in: "room_id").replacing(
            #""event_id""#, with: #""content":"\#(String(repeating: "x", count: 100_000))","event_id""#)
        let sent = try messages(text)
        #expect((sent == [.tooLarge]) == isTooLarge)
        #expect(try parse(text).map(\.pushkeys) == [["a"]])
    }

    @Test func `content may be nested to any depth`() throws {
        let nested = String(repeating: #"{"a":["#, count: 20_000) + String(repeating: "]}", count: 20_000)
        let text = #"{"notification":{"content":\#(nested),"devices":[{"pushkey":"a"}]}}"#
        #expect(
            try messages(text) == [.shortened(Array(#"{"notification":{"devices":[{"pushkey":"a"}]}}"#.utf8))])
        let half = String(nested.dropLast())
        for wrong in [half, half + "]", nested + "]", String(nested.dropFirst())] {
            #expect(throws: Refusal.self) {
                try parse(#"{"notification":{"content":\#(wrong),"devices":[{"pushkey":"a"}]}}"#)
            }
        }
    }

    @Test func `every spelling of an endpoint is one device`() throws {
        let spellings = [
            "https://push.example.com/push/a-b", "https://push.example.com/push/%61%2db",
            "https://push.example.com/push/a-b?up=1", "https://push.example.com:443/push/a-b",
        ]
        let others = ["https://push.example.com/push/a%2Fb", "a-b", "https://other.example/push/a-b"]
        let keys = spellings + others + spellings
        let entries = keys.map { #"{"pushkey":"\#($0)"}"# }.joined(separator: ",")
        let devices = try parse(#"{"notification":{"devices":[\#(entries)]}}"#)
        #expect(devices.map(\.pushkeys) == [spellings] + others.map { [$0] })
        #expect(devices.map(\.token) == ["a-b", "a%2Fb", nil, nil])
        #expect(devices.first.map { String(decoding: $0.entry, as: UTF8.self) } == #"{"pushkey":"\#(spellings[0])"}"#)
    }

    @Test func `a hundred devices take little more work than one, however many members there are`() throws {
        let members = String(repeating: #""":0,"#, count: 20_000)
        func time(_ devices: Int) throws -> Duration {
            let entries = (0..<devices).map { #"{"pushkey":"\#($0)"}"# }.joined(separator: ",")
            let body = Array(#"{"notification":{\#(members)"devices":[\#(entries)]}}"#.utf8)
            return try (0..<5).map { _ in
                try ThreadTime.measure {
                    let notification = try MatrixNotification(parsing: body) { $0 }
                    for device in notification.devices { _ = notification.message(for: device) }
                }
            }.min() ?? .zero
        }
        #expect(try time(100) < time(1) * 16)
    }

    @Test func `no devices are no fault, and a hundred and one are`() throws {
        #expect(try parse(#"{"notification":{"devices":[]}}"#).isEmpty)
        func entries(_ count: Int) -> String { (0..<count).map { #"{"pushkey":"\#($0)"}"# }.joined(separator: ",") }
        #expect(try parse(#"{"notification":{"devices":[\#(entries(100))]}}"#).count == 100)
        #expect(throws: Refusal.self) { try parse(#"{"notification":{"devices":[\#(entries(101))]}}"#) }
    }

    @Test(arguments: [
        "", "{", "[]", "null", "{}", #"{"notification":7}"#, #"{"notification":{}}"#, #"{"notification":{"devices":{}}}"#,
        #"{"notification":{"devices":[{}]}}"#, #"{"notification":{"devices":[{"pushkey":7}]}}"#,
        #"{"notification":{"devices":["a"]}}"#, #"{"notification":{"devices":[]}} x"#,
        #"{"notification":{"devices":[],"devices":[{"pushkey":"b"}]}}"#,
        #"{"notification":{"devices":[{"pushkey":"b"}]},"notification":{"devices":[]}}"#,
        #"{"notification":{"devices":[{"pushkey":"a","pushkey":"b"}]}}"#, String(repeating: "[", count: 5000),
        #"{"notification":{"devices":[{"pushkey":"a"},]}}"#,
    ])
    func `an invalid notification, or one that hides an entry, is refused`(text: String) {
        #expect(throws: Refusal.self) { try parse(text) }
    }

    @Test func `a number that is out of range is refused with its place`() {
        let text = #"{"notification":{"content":{"ts":1e999},"devices":[{"pushkey":"a"}]}}"#
        let refusal = #expect(throws: Refusal.self) { try parse(text) }
        #expect(refusal?.code == .fieldInvalid && refusal?.detail.contains("\"notification.content.ts\"") == true)
    }
}
