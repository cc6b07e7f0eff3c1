import CarillonWire
import NIOCore
import NIOWebSocket
import Testing

@testable import CarillonServer

struct MessageAssemblerTests {
    private func frame(
        _ text: String, _ opcode: WebSocketOpcode = .text, fin: Bool = true, rsv1: Bool = false, masked: Bool = true
    ) -> WebSocketFrame {
        frame(Array(text.utf8), opcode, fin: fin, rsv1: rsv1, masked: masked)
    }

    private func frame(
        _ bytes: [UInt8], _ opcode: WebSocketOpcode, fin: Bool = true, rsv1: Bool = false, masked: Bool = true
    ) -> WebSocketFrame {
        let key: WebSocketMaskingKey? = masked ? [1, 2, 3, 4] : nil
        var data = ByteBuffer(bytes: bytes)
        if let key { data.webSocketMask(key) }
        return WebSocketFrame(fin: fin, rsv1: rsv1, opcode: opcode, maskKey: key, data: data)
    }

    private func text(_ event: MessageAssembler.Event) -> String? {
        if case .text(let bytes) = event { String(decoding: bytes, as: UTF8.self) } else { nil }
    }

    private func fault(_ event: MessageAssembler.Event) -> CloseCode? {
        if case .fault(let code, _) = event { code } else { nil }
    }

    @Test func `a message in one frame, and one in several, are whole`() {
        var assembler = MessageAssembler()
        #expect(text(assembler.received(frame("whole"))) == "whole")
        #expect(text(assembler.received(frame("a", fin: false))) == nil)
        #expect(text(assembler.received(frame("b", .continuation, fin: false))) == nil)
        guard case .ping = assembler.received(frame("", .ping)) else {
            Issue.record("a control frame may come between fragments")
            return
        }
        #expect(text(assembler.received(frame("c", .continuation))) == "abc")
    }

    @Test func `a character may be cut by a fragment, and must be whole in the end`() {
        var assembler = MessageAssembler()
        let bell = Array("\u{1F514}".utf8)
        _ = assembler.received(frame(Array(bell[..<2]), .text, fin: false))
        #expect(text(assembler.received(frame(Array(bell[2...]), .continuation))) == "\u{1F514}")
        #expect(fault(assembler.received(frame(Array(bell[..<3]), .text))) == .invalidUTF8)
    }

    @Test func `what breaks RFC 6455 is a fault with its code`() {
        var assembler = MessageAssembler()
        #expect(fault(assembler.received(frame("x", rsv1: true))) == .protocolError)
        #expect(fault(assembler.received(frame("x", masked: false))) == .protocolError)
        #expect(fault(assembler.received(frame("x", .continuation))) == .protocolError)
        #expect(fault(assembler.received(frame("x", .binary))) == .unsupportedData)
        _ = assembler.received(frame("x", fin: false))
        #expect(fault(assembler.received(frame("y"))) == .protocolError)
    }

    @Test func `fragments are bounded in bytes and in number`() {
        var large = MessageAssembler(limit: 10)
        _ = large.received(frame("123456", fin: false))
        #expect(fault(large.received(frame("78901", .continuation))) == .tooBig)
        var many = MessageAssembler()
        _ = many.received(frame("", fin: false))
        var last: CloseCode?
        for _ in 0..<200 where last == nil { last = fault(many.received(frame("", .continuation, fin: false))) }
        #expect(last == .policy)
    }

    @Test(arguments: [[3], [3, 231], [3, 237], [3, 238], [19, 136]] as [[UInt8]])
    func `a close frame with a code that is never sent is a fault`(bytes: [UInt8]) {
        var assembler = MessageAssembler()
        #expect(fault(assembler.received(frame(bytes, .connectionClose))) == .protocolError)
    }
}
