import CarillonWire
import TestSupport
import Testing

struct FrameTests {
    private func parse(_ text: String) throws -> ClientFrame { try ClientFrame(parsing: Array(text.utf8)) }

    @Test func `an empty object and a ping are pings`() throws {
        #expect(try parse("{}") == .ping)
        #expect(try parse(#"{"messageType":"ping"}"#) == .ping)
    }

    @Test func `a hello accepts any description that a user agent has`() throws {
        #expect(
            try parse(#"{"messageType":"hello","uaid":"abc","use_webpush":true,"channelIDs":[],"broadcasts":{"a":"b"}}"#)
                == .hello(.init(uaid: "abc")))
        #expect(try parse(#"{"messageType":"hello","uaid":12}"#) == .hello(.init(uaid: "")))
        #expect(
            try parse(#"{"messageType":"hello","carillon":1,"device":"d","credential":"c"}"#)
                == .hello(.init(carillon: 1, device: "d", credential: "c")))
    }

    @Test(arguments: [
        (#"{"messageType":"ack"}"#, ClientFrame.Fault.badMember("updates")),
        (#"{"messageType":"ack","updates":[{"channelID":"x"}]}"#, .badMember("version")),
        (#"{"messageType":"ack","updates":7}"#, .badMember("updates")),
        (#"{"messageType":"register"}"#, .badMember("channelID")),
        (#"{"messageType":"register","channelID":7}"#, .badMember("channelID")),
        (#"{"messageType":7}"#, .badMember("messageType")),
        (#"{"uaid":"x"}"#, .badMember("messageType")),
        (#"{"messageType":"ack","updates":[1e999]}"#, .numberOutOfRange(line: 1, column: 33)),
        ("1e999", .numberOutOfRange(line: 1, column: 1)),
        ("[]", .notJSON), ("", .notJSON), ("7", .notJSON), ("{", .notJSON), ("null", .notJSON),
    ])
    func `a text that is not a frame is refused with the reason`(text: String, fault: ClientFrame.Fault) {
        #expect(throws: fault) { try parse(text) }
        #expect(fault.reason.utf8.count <= 123)
    }

    @Test(arguments: [
        ("-0.0", 0), ("-0", 0), ("0e7", 0), ("301", 301), ("301.0", 301), ("3.01e2", 301), ("3e2", 300), ("30100E-2", 301),
        ("9007199254740993.0", 9_007_199_254_740_993), ("9223372036854775807.0", Int.max),
    ])
    func `a number whose value is an integer is that integer`(text: String, number: Int) throws {
        #expect(
            try parse(#"{"messageType":"nack","version":"x","code":\#(text)}"#) == .nack(version: "x", code: number))
        #expect(
            try parse(#"{"messageType":"ack","updates":[{"version":"x","code":\#(text)}]}"#)
                == .ack([.init(version: "x", code: number)]))
        #expect(
            try parse(#"{"messageType":"unregister","channelID":"c","code":\#(text)}"#)
                == .unregister(channelID: "c", code: number))
        #expect(try parse(#"{"messageType":"hello","carillon":\#(text)}"#) == .hello(.init(carillon: number)))
        #expect(
            try ServerFrame.parse(Array(#"{"messageType":"unregister","channelID":"c","status":\#(text)}"#.utf8))
                == .unregister(channelID: "c", status: number))
    }

    @Test(arguments: ["0.5", "301.5", "9223372036854775808", "-9223372036854775809", "\"301\""])
    func `a number whose value is not an integer is refused in the place of an integer`(text: String) {
        #expect(throws: ClientFrame.Fault.badMember("code")) {
            try parse(#"{"messageType":"nack","version":"x","code":\#(text)}"#)
        }
    }

    @Test func `an unknown type is not a fault, with any other members in the frame`() throws {
        #expect(try parse(#"{"messageType":"broadcast_v2","x":[{"y":1e9}],"updates":7}"#) == .unknown(type: "broadcast_v2"))
        #expect(try parse(#"{"messageType":""}"#) == .unknown(type: ""))
    }

    @Test func `unknown members are ignored in every frame`() throws {
        let more = #""more":{"a":[1,null]},"urgency":7"#
        #expect(try parse(#"{"messageType":"ping",\#(more)}"#) == .ping)
        #expect(try parse(#"{"messageType":"hello",\#(more)}"#) == .hello(.init()))
        #expect(try parse(#"{"messageType":"nack","version":"v",\#(more)}"#) == .nack(version: "v", code: nil))
        #expect(
            try parse(#"{"messageType":"unregister","channelID":"c",\#(more)}"#) == .unregister(channelID: "c", code: nil))
        #expect(try parse(#"{"messageType":"register","channelID":"c",\#(more)}"#) == .register(.init(channelID: "c")))
        #expect(
            try parse(#"{"messageType":"ack","updates":[{"version":"v",\#(more)}],\#(more)}"#)
                == .ack([.init(version: "v")]))
    }

    @Test(arguments: [
        ClientFrame.hello(.init(uaid: "u", carillon: 1, device: "d", credential: "c")),
        .register(.init(channelID: "c", key: "k", name: "a \"name\" with \\ and \u{1}")),
        .register(.init(channelID: "c", name: "n", wake: "alert")),
        .unregister(channelID: "c", code: 200),
        .ack([.init(version: "v", code: 100), .init(version: "w")]),
        .nack(version: "v", code: 301),
        .broadcastSubscribe(ids: ["a", "b"]),
        .ping, .unknown(type: "later"),
    ])
    func `a client's frame is read as it was written`(frame: ClientFrame) throws {
        #expect(try ClientFrame(parsing: frame.text) == frame)
    }

    @Test(arguments: [
        ServerFrame.hello(.init(uaid: "u")),
        .hello(.init(uaid: "u", carillon: .init(keepAliveSeconds: 60))),
        .hello(.init(uaid: "u", carillon: .init(keepAliveSeconds: 60, server: "0123"))),
        .register(.init(channelID: "c", status: 200, pushEndpoint: "http://x/push/t")),
        .register(.init(channelID: "c", status: 400)),
        .register(.init(channelID: "c", status: 500, code: "rate_limited", retryAfterSeconds: 3)),
        .unregister(channelID: "c", status: 200),
        .notification(.init(channelID: "c", version: "v", body: [], coding: nil)),
        .notification(.init(channelID: "c", version: "v", body: [0, 255, 1], coding: .init(.aes128gcm))),
        .notification(
            .init(channelID: "c", version: "v", body: [9], coding: .init(.aesgcm, encryption: "salt=x", cryptoKey: "dh=y"))),
        .channelEvent(.init(channelID: "c", version: "v", event: .closed)),
        .channelEvent(.init(channelID: "c", version: "v", event: .error(code: 503))),
        .channelEvent(.init(channelID: "c", version: "v", event: .pingFailed(code: 605))),
        .channelEvent(.init(channelID: "c", version: "v", event: .recovered)),
        .caughtUp, .goodbye(delaySeconds: 3), .pong,
    ])
    func `a server's frame is read as it was written`(frame: ServerFrame) throws {
        #expect(try ServerFrame.parse(frame.text) == frame)
    }

    @Test func `a message without a body has neither data nor headers`() throws {
        let frame = ServerFrame.notification(.init(channelID: "c", version: "v", body: [], coding: .init(.aes128gcm)))
        let text = String(decoding: frame.text, as: UTF8.self)
        #expect(text == #"{"messageType":"notification","channelID":"c","version":"v"}"#)
    }

    @Test func `a frame type that a client does not know is none, and no fault`() throws {
        #expect(try ServerFrame.parse(Array(#"{"messageType":"future"}"#.utf8)) == nil)
        let event = #"{"messageType":"channel","channelID":"c","version":"v","event":"future","more":[1]}"#
        #expect(
            try ServerFrame.parse(Array(event.utf8))
                == .channelEvent(.init(channelID: "c", version: "v", event: .other("future"))))
        #expect(throws: ServerFrame.Fault.self) { try ServerFrame.parse(Array("nonsense".utf8)) }
    }

    @Test func `random bytes are a fault and never a crash`() {
        var generator = SeededRandom.forTest()
        for _ in 0..<2000 {
            let bytes = (0..<Int.random(in: 0...64, using: &generator)).map { _ in
                UInt8.random(in: 0...255, using: &generator)
            }
            _ = try? ClientFrame(parsing: bytes)
            _ = try? ServerFrame.parse(bytes)
        }
    }

    @Test func `a frame with any one byte changed is read, or refused, and never crashes`() {
        var generator = SeededRandom.forTest()
        let frame = ClientFrame.ack([.init(version: "abc", code: 100), .init(version: "\u{1F514}")]).text
        for index in frame.indices {
            var changed = frame
            changed[index] = UInt8.random(in: 0...255, using: &generator)
            _ = try? ClientFrame(parsing: changed)
        }
    }
}
