import CarillonWire
import Testing

@testable import CarillonServer

struct MatrixNotificationTests {
    private func parse(_ text: String) throws -> [MatrixNotification.Device] {
        try MatrixNotification(parsing: Array(text.utf8)).devices
    }

    @Test func `each device is sent its own entry, and all else as it was written`() throws {
        let text =
            #"{ "notification" : {"counts":{"unread":2.50},"devices": [ {"pushkey":"a", "x":1e2} ,{"pushkey":"b"}], "z":"\u00e9" } }"#
        let devices = try parse(text)
        #expect(devices.map(\.pushkey) == ["a", "b"])
        #expect(
            devices.map { String(decoding: $0.body, as: UTF8.self) } == [
                #"{ "notification" : {"counts":{"unread":2.50},"devices": [{"pushkey":"a", "x":1e2}], "z":"\u00e9" } }"#,
                #"{ "notification" : {"counts":{"unread":2.50},"devices": [{"pushkey":"b"}], "z":"\u00e9" } }"#,
            ])
    }

    @Test func `a key that comes again counts once, however it is written`() throws {
        let again = #"{"pushkey":"a"},{"pushkey":"\u0061","app_id":"x"}"#
        let entries = Array(repeating: again, count: 39).joined(separator: ",")
        let devices = try parse(#"{"notification":{"devices":[\#(entries)]}}"#)
        #expect(devices.map(\.pushkey) == ["a"])
        #expect(devices.first?.body == Array(#"{"notification":{"devices":[{"pushkey":"a"}]}}"#.utf8))
    }

    @Test func `a key with a percent-encoded unreserved character is the same key`() throws {
        let entries = #"{"pushkey":"a-b"},{"pushkey":"%61%2db"},{"pushkey":"a%2Fb"}"#
        let devices = try parse(#"{"notification":{"devices":[\#(entries)]}}"#)
        #expect(devices.map(\.pushkey) == ["a-b", "a%2Fb"])
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
    func `what is none, or hides an entry, is refused`(text: String) {
        #expect(throws: Refusal.self) { try parse(text) }
    }
}
