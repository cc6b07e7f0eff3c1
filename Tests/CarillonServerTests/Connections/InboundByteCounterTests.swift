import NIOCore
import NIOEmbedded
import Testing

@testable import CarillonServer

struct InboundByteCounterTests {
    @Test func `it counts the bytes since the last read, and passes them on`() throws {
        let counter = InboundByteCounter()
        let channel = EmbeddedChannel(handler: counter)
        #expect(counter.take() == 0)
        for text in ["abc", "de"] { try channel.writeInbound(ByteBuffer(string: text)) }
        #expect(counter.take() == 5)
        #expect(counter.take() == 0)
        try channel.writeInbound(ByteBuffer(string: "f"))
        #expect(counter.take() == 1)
        let passed = try (0..<3).map { _ in try channel.readInbound(as: ByteBuffer.self) }
        #expect(passed == ["abc", "de", "f"].map { ByteBuffer(string: $0) })
    }
}
