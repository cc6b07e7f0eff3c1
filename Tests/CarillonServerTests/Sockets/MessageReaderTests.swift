import CarillonWire
import NIOCore
import NIOWebSocket
import TestSupport
import Testing

@testable import CarillonServer

/// The frames are masked by NIO, which has no code in common with the reader.
struct MessageReaderTests {
    private func frame(
        _ text: String, _ opcode: WebSocketOpcode = .text, fin: Bool = true, rsv1: Bool = false, masked: Bool = true
    ) -> ByteBuffer {
        frame(Array(text.utf8), opcode, fin: fin, rsv1: rsv1, masked: masked)
    }

    private func frame(
        _ bytes: [UInt8], _ opcode: WebSocketOpcode, fin: Bool = true, rsv1: Bool = false, masked: Bool = true
    ) -> ByteBuffer {
        var header: [UInt8] = [(fin ? 0x80 : 0) | (rsv1 ? 0x40 : 0) | UInt8(webSocketOpcode: opcode)]
        let mask: UInt8 = masked ? 0x80 : 0
        switch bytes.count {
        case ...125: header.append(mask | UInt8(bytes.count))
        case ...65_535: header += [mask | 126, UInt8(bytes.count >> 8), UInt8(bytes.count & 0xFF)]
        default: header += [mask | 127] + (0..<8).reversed().map { UInt8(bytes.count >> ($0 * 8) & 0xFF) }
        }
        var data = ByteBuffer(bytes: bytes)
        if masked {
            header += [1, 2, 3, 4]
            data.webSocketMask([1, 2, 3, 4])
        }
        return ByteBuffer(bytes: header + Array(buffer: data))
    }

    private func events(_ frames: ByteBuffer..., reader: inout MessageReader) -> [MessageReader.Event] {
        var events: [MessageReader.Event] = []
        for frame in frames {
            reader.received(frame)
            while let event = reader.next() { events.append(event) }
        }
        return events
    }

    private func events(_ frames: ByteBuffer...) -> [MessageReader.Event] {
        var reader = MessageReader()
        return frames.flatMap { events($0, reader: &reader) }
    }

    private func fault(_ events: [MessageReader.Event]) -> CloseCode? {
        if case .fault(let code, _)? = events.last { code } else { nil }
    }

    @Test func `a message in one frame, and one in several, are whole`() {
        #expect(events(frame("whole")) == [.text(Array("whole".utf8))])
        let parts = events(
            frame("a", fin: false), frame("b", .continuation, fin: false), frame("", .ping), frame("c", .continuation))
        #expect(parts == [.ping(ByteBuffer()), .text(Array("abc".utf8))])
    }

    @Test(arguments: [0, 1, 3, 4, 5, 125, 126, 127, 65_535, 65_536])
    func `a message of any length is received as it was sent, with any split of its bytes`(length: Int) {
        let bytes = (0..<length).map { UInt8($0 % 94 + 32) }
        let sent = frame(bytes, .text)
        #expect(events(sent) == [.text(bytes)])
        for step in [1, 2, 7, 4096] where length < 1000 || step > 1 {
            var reader = MessageReader()
            var rest = sent
            var events: [MessageReader.Event] = []
            while let part = rest.readSlice(length: min(step, rest.readableBytes)), part.readableBytes > 0 {
                events += self.events(part, reader: &reader)
            }
            #expect(events == [.text(bytes)])
        }
    }

    @Test func `messages that come in one read come one after the other`() {
        var all = frame("1")
        all.writeImmutableBuffer(frame("2"))
        all.writeImmutableBuffer(frame("", .pong))
        all.writeImmutableBuffer(frame([0x03, 0xE8], .connectionClose))
        #expect(events(all) == [.text([0x31]), .text([0x32]), .pong, .close(code: 1000)])
    }

    @Test func `a character may be cut by a fragment, and must be whole in the end`() {
        let bell = Array("\u{1F514}".utf8)
        let cut = events(frame(Array(bell[..<2]), .text, fin: false), frame(Array(bell[2...]), .continuation))
        #expect(cut == [.text(bell)])
        #expect(fault(events(frame(Array(bell[..<3]), .text))) == .invalidUTF8)
    }

    @Test func `a message of fragments is UTF-8 as a whole, too`() {
        let bell = Array("\u{1F514}".utf8)
        #expect(
            fault(events(frame(Array(bell[..<2]), .text, fin: false), frame(Array(bell[..<2]), .continuation)))
                == .invalidUTF8)
        #expect(fault(events(frame([0xFF], .text, fin: false), frame("x", .continuation))) == .invalidUTF8)
        #expect(fault(events(frame("x", fin: false), frame(Array(bell[2...]), .continuation))) == .invalidUTF8)
        #expect(fault(events(frame(Array(bell[..<2]), .text, fin: false), frame("", .continuation))) == .invalidUTF8)
    }

    @Test(arguments: ["a", "\u{e9}", "\u{20ac}", "\u{1F514}", "e\u{301}"])
    func `the reason of a close is cut between characters`(character: String) {
        for lead in 0..<4 {
            let reason = String(repeating: "x", count: lead) + String(repeating: character, count: 200)
            let payload = CloseCode.restart.payload(reason)
            #expect(Array(payload.prefix(2)) == [0x03, 0xF4])
            let notified = String(validating: payload.dropFirst(2), as: UTF8.self)
            #expect(notified.map { reason.utf8.starts(with: $0.utf8) } == true)
            #expect((122...125).contains(payload.count))
        }
        #expect(CloseCode.normal.payload("\(character)!") == [0x03, 0xE8] + Array("\(character)!".utf8))
    }

    @Test func `a violation of RFC 6455 is a fault with its code`() {
        #expect(fault(events(frame("x", rsv1: true))) == .protocolError)
        #expect(fault(events(frame("x", masked: false))) == .protocolError)
        #expect(fault(events(frame("x", .continuation))) == .protocolError)
        #expect(fault(events(frame("x", .binary))) == .unsupportedData)
        #expect(fault(events(frame("x", fin: false), frame("y"))) == .protocolError)
        #expect(fault(events(frame("x", .ping, fin: false))) == .protocolError)
        #expect(fault(events(frame(String(repeating: "x", count: 126), .ping))) == .protocolError)
        #expect(fault(events(ByteBuffer(bytes: [0x83, 0x80]))) == .protocolError)
    }

    @Test(
        arguments: [
            [0x81, 0xFE, 0, 125], [0x81, 0xFF, 0, 0, 0, 0, 0, 0, 255, 255], [0x81, 0xFF, 128, 0, 0, 0, 0, 1, 0, 0],
        ] as [[UInt8]])
    func `a length is written as short as it can be, in 63 bits`(bytes: [UInt8]) {
        #expect(fault(events(ByteBuffer(bytes: bytes))) == .protocolError)
    }

    @Test func `a frame beyond the limit is refused by its header`() {
        #expect(fault(events(ByteBuffer(bytes: [0x81, 0xFF, 0, 0, 0, 0, 0, 1, 0, 1, 1, 2, 3, 4]))) == .tooBig)
    }

    @Test func `fragments are bounded in bytes and in number`() {
        var large = MessageReader(limit: 10)
        #expect(fault(events(frame("123456", fin: false), frame("78901", .continuation), reader: &large)) == .tooBig)
        var many = MessageReader()
        _ = events(frame("", fin: false), reader: &many)
        var last: CloseCode?
        for _ in 0..<200 where last == nil { last = fault(events(frame("", .continuation, fin: false), reader: &many)) }
        #expect(last == .policy)
    }

    @Test(arguments: [[3], [3, 231], [3, 237], [3, 238], [19, 136]] as [[UInt8]])
    func `a close frame with a code that is never sent is a fault`(bytes: [UInt8]) {
        #expect(fault(events(frame(bytes, .connectionClose))) == .protocolError)
    }

    @Test func `nothing is read after a fault`() {
        var reader = MessageReader()
        _ = events(frame("x", .binary), reader: &reader)
        #expect(events(frame("fine"), reader: &reader) == [])
    }

    @Test func `random bytes never do worse than a fault`() {
        var random = SeededRandom.forTest()
        for _ in 0..<2000 {
            var reader = MessageReader()
            let bytes = (0..<Int.random(in: 1...64, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
            let events = events(ByteBuffer(bytes: bytes), reader: &reader)
            let faults = events.filter { if case .fault = $0 { true } else { false } }
            #expect(faults.count <= 1)
        }
    }
}
