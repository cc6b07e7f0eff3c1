import NIOCore
import NIOHPACK
import Testing

@testable import CarillonAPNsSimulator

struct HTTP2ConnectionTests {
    private func connection(streams: Int = 100, window: Int = 65_535, target: Int = 65_535) -> HTTP2Connection {
        var connection = HTTP2Connection(connectionTarget: target)
        connection.offer(streams: streams, streamWindow: window)
        _ = connection.takeFrames()
        return connection
    }

    @Test func `a request arrives, however its bytes are split`() throws {
        var client = FrameClient()
        let block = try client.block(FrameClient.push)
        client.frame(0x1, 0x8 | 0x20, 1, [2, 0, 0, 0, 0, 15] + block.prefix(10) + [0, 0])
        client.frame(0x9, 0x4, 1, Array(block.dropFirst(10)))
        client.frame(0x0, 0x8, 1, [3, 1, 2, 3, 0, 0, 0])
        client.frame(0x0, 0x1, 1, [4])
        client.frame(0x6, 0, 0, [1, 2, 3, 4, 5, 6, 7, 8])
        client.frame(0x2, 0, 3, [0, 0, 0, 0, 1])
        client.frame(0xF0, 0, 0, [9])
        let whole = client.take()
        var generator = IdentifierSource.ofTheDay()
        for _ in 0..<50 {
            var connection = connection()
            var rest = whole
            var events: [String] = []
            while rest.readableBytes > 0,
                let part = rest.readSlice(length: min(rest.readableBytes, Int.random(in: 1...40, using: &generator)))
            {
                connection.received(part)
                events += connection.events()
            }
            #expect(events == ["headers 1", "request 1 4/4", "ping", "priority"])
            #expect(connection.takeFrames().map(\.kind) == [0x4, 0x6])
        }
    }

    @Test func `random bytes end the connection, and nothing else`() throws {
        var generator = IdentifierSource.ofTheDay()
        for _ in 0..<500 {
            var client = FrameClient()
            try client.request(1)
            for _ in 0..<Int.random(in: 1...20, using: &generator) {
                let payload = (0..<Int.random(in: 0...20, using: &generator)).map { _ in
                    UInt8.random(in: 0...255, using: &generator)
                }
                client.frame(
                    UInt8.random(in: 0...10, using: &generator), UInt8.random(in: 0...255, using: &generator),
                    UInt32.random(in: 0...6, using: &generator), payload)
            }
            var connection = connection()
            connection.received(client.take())
            let events = connection.events()
            #expect(connection.isFailed == events.contains { $0.hasPrefix("failed") })
            if connection.isFailed { #expect(connection.takeFrames().last?.kind == 0x7) }
        }
    }

    static let violations: [(String, @Sendable (inout FrameClient) throws -> Void)] = [
        ("PROTOCOL_ERROR", { $0.bytes.setInteger(UInt8(ascii: "G"), at: 0) }),
        ("PROTOCOL_ERROR", { $0.frame(0x0, 0, 0, [1]) }),
        ("PROTOCOL_ERROR", { $0.frame(0x0, 0, 5, [1]) }),
        ("PROTOCOL_ERROR", { $0.frame(0x1, 0x4, 2, []) }),
        ("PROTOCOL_ERROR", { $0.frame(0x5, 0, 1, []) }),
        ("PROTOCOL_ERROR", { $0.frame(0x9, 0, 1, []) }),
        ("PROTOCOL_ERROR", { $0.frame(0x3, 0, 0, [0, 0, 0, 8]) }),
        ("PROTOCOL_ERROR", { $0.frame(0x8, 0, 0, [0, 0, 0, 0]) }),
        ("FRAME_SIZE_ERROR", { $0.frame(0x6, 0, 0, [1]) }),
        ("FRAME_SIZE_ERROR", { $0.frame(0x4, 0, 0, [1]) }),
        ("FRAME_SIZE_ERROR", { $0.frame(0x0, 0, 1, Array(repeating: 0, count: 16_385)) }),
        ("COMPRESSION_ERROR", { $0.frame(0x1, 0x4, 1, [0xFF, 0xFF, 0xFF, 0xFF]) }),
        ("FLOW_CONTROL_ERROR", { $0.frame(0x8, 0, 0, [0x7F, 0xFF, 0xFF, 0xFF]) }),
        (
            "STREAM_CLOSED",
            { client in
                try client.request(3)
                client.frame(0x1, 0x5, 1, try client.block(FrameClient.push))
            }
        ),
    ]

    @Test(arguments: violations.indices) func `a violation of the protocol ends the connection with its error code`(
        index: Int
    ) throws {
        var client = FrameClient()
        try Self.violations[index].1(&client)
        var connection = connection()
        connection.received(client.take())
        #expect(connection.events().last == "failed \(Self.violations[index].0)")
    }

    @Test func `a malformed request costs its stream only`() throws {
        var client = FrameClient()
        client.frame(0x1, 0x5, 1, try client.block([":method": "POST", ":scheme": "https"]))
        client.frame(
            0x1, 0x5, 3, try client.block([":method": "POST", ":scheme": "https", ":path": "/", "connection": "close"]))
        try client.request(5)
        var connection = connection()
        connection.received(client.take())
        #expect(connection.events() == ["reset 1", "reset 3", "headers 5", "request 5 3/3"])
        #expect(connection.takeFrames().filter { $0.kind == 0x3 }.map(\.number) == [1, 1])
    }

    /// The length in the header of a request of three bytes, and the result of the request.
    static let lengths: [(said: [String], events: [String])] = [
        ([], ["headers 1", "request 1 3/3"]), (["3"], ["headers 1", "request 1 3/3"]),
        (["03"], ["headers 1", "request 1 3/3"]), (["3", "3"], ["headers 1", "request 1 3/3"]),
        (["2"], ["headers 1", "reset 1"]), (["4"], ["headers 1", "reset 1"]), (["0"], ["headers 1", "reset 1"]),
        (["3", "4"], ["reset 1"]), (["+3"], ["reset 1"]), (["-3"], ["reset 1"]), (["3,3"], ["reset 1"]), ([""], ["reset 1"]),
        (["99999999999999999999"], ["reset 1"]), (["0x3"], ["reset 1"]), ([" 3"], ["reset 1"]),
    ]

    @Test(arguments: lengths.indices) func `a body must have the length that its header states`(index: Int) throws {
        let (said, events) = Self.lengths[index]
        var headers = FrameClient.push
        for length in said { headers.add(name: "content-length", value: length) }
        var client = FrameClient()
        client.frame(0x1, 0x4, 1, try client.block(headers))
        client.frame(0x0, 0, 1, [1, 2])
        client.frame(0x0, 0x1, 1, [3])
        var connection = connection()
        connection.received(client.take())
        #expect(connection.events() == events)
        #expect(connection.openStreams == (events.last == "reset 1" ? 0 : 1))
        let resets = connection.takeFrames().filter { $0.kind == 0x3 }
        #expect(resets.map(\.number) == (events.last == "reset 1" ? [1] : []))
    }

    @Test func `a body that continues beyond its length is not awaited`() throws {
        var headers = FrameClient.push
        headers.add(name: "content-length", value: "3")
        var client = FrameClient()
        client.frame(0x1, 0x4, 1, try client.block(headers))
        client.frame(0x0, 0, 1, [1, 2, 3])
        var connection = connection()
        connection.received(client.take())
        #expect(connection.events() == ["headers 1"])
        client.frame(0x0, 0, 1, [4])
        connection.received(client.take())
        #expect(connection.events() == ["reset 1"])
        #expect(connection.openStreams == 0)
    }

    @Test(arguments: [("0", "request 1 0/0"), ("3", "reset 1")])
    func `a request without a body has no length, or the length 0`(length: String, event: String) throws {
        var headers = FrameClient.push
        headers.add(name: "content-length", value: length)
        var client = FrameClient()
        client.frame(0x1, 0x5, 1, try client.block(headers))
        var connection = connection()
        connection.received(client.take())
        #expect(connection.events().last == event)
    }

    @Test(arguments: [0, 1]) func `more headers than were offered are refused with 431`(excess: Int) throws {
        var headers = FrameClient.push
        let before = headers.map { $0.name.utf8.count + $0.value.utf8.count + 32 }.reduce(0, +)
        let rest = HTTP2Connection.largestHeaderList - before - 34 + excess
        headers.add(name: "xx", value: String(repeating: "v", count: rest))
        var client = FrameClient()
        client.frame(0x1, 0x4, 1, try client.block(headers))
        client.frame(0x0, 0x1, 1, [1])
        try client.request(3)
        var connection = connection()
        connection.received(client.take())
        let isTooLarge = excess > 0
        let first = isTooLarge ? ["too large 1"] : ["headers 1", "request 1 1/1"]
        #expect(connection.events() == first + ["headers 3", "request 3 3/3"])
        let frames = connection.takeFrames()
        #expect(frames.contains { $0.kind == 0x1 && $0.stream == 1 } == isTooLarge)
        // The rest of the body is not wanted, which is no error.
        #expect(frames.filter { $0.kind == 0x3 }.map(\.number) == (isTooLarge ? [0] : []))
    }

    @Test func `streams beyond the offer are refused, and beyond the confirmed limit are a violation`() throws {
        var client = FrameClient()
        for stream in [1, 3] as [UInt32] { try client.request(stream) }
        client.frame(0x4, 0x1, 0, [])
        try client.request(5)
        var connection = connection(streams: 1)
        connection.received(client.take())
        #expect(connection.events() == ["headers 1", "request 1 3/3", "refused 3", "violated 5"])
        connection.answer(1, [":status": "200"], body: ByteBuffer())
        connection.offer(streams: 2)
        for stream in [7, 9, 11] as [UInt32] { try client.request(stream) }
        connection.received(client.take())
        #expect(connection.events().filter { !$0.hasPrefix("request") } == ["headers 7", "headers 9", "violated 11"])
    }

    @Test func `windows are enlarged as bodies are read, up to the target`() throws {
        var client = FrameClient()
        client.frame(0x4, 0x1, 0, [])
        try client.request(1, body: Array(repeating: 0, count: 10), ends: false)
        try client.request(3, body: Array(repeating: 0, count: 16))
        var connection = connection(window: 16)
        connection.received(client.take())
        #expect(connection.events() == ["headers 1", "headers 3", "request 3 16/16"])
        #expect(connection.takeFrames().filter { $0.kind == 0x8 }.map { [$0.stream, $0.number] } == [[1, 10]])
        client.frame(0x0, 0, 1, Array(repeating: 0, count: 17))
        connection.received(client.take())
        #expect(connection.events() == ["reset 1"])
    }

    @Test func `at the end of a read the connection's window is whole again, unless little of it was used`() throws {
        var client = FrameClient()
        client.frame(0x4, 0x1, 0, [])
        try client.request(1, body: Array(repeating: 0, count: 8000))
        var connection = connection(target: 65_535)
        connection.received(client.take())
        _ = connection.events()
        connection.endRead()
        #expect(connection.takeFrames().allSatisfy { $0.kind != 0x8 })
        try client.request(3, body: Array(repeating: 0, count: 1000))
        connection.received(client.take())
        _ = connection.events()
        connection.endRead()
        #expect(connection.takeFrames().filter { $0.kind == 0x8 }.map(\.number) == [9000])
    }

    @Test func `a connection window of nothing is never opened again`() throws {
        var client = FrameClient()
        var connection = connection(window: 1_000_000, target: 0)
        client.frame(0x4, 0x1, 0, [])
        try client.request(1, body: [], ends: false)
        for _ in 0..<3 { client.frame(0x0, 0, 1, Array(repeating: 0, count: 16_384)) }
        client.frame(0x0, 0, 1, Array(repeating: 0, count: 16_383))
        connection.received(client.take())
        #expect(connection.events() == ["headers 1"])
        let frames = connection.takeFrames()
        #expect(frames.allSatisfy { $0.kind != 0x8 })
        client.frame(0x0, 0, 1, [0])
        connection.received(client.take())
        #expect(connection.events() == ["failed FLOW_CONTROL_ERROR"])
    }

    @Test func `a large answer waits for the client's windows`() throws {
        var client = FrameClient(settings: [0, 4, 0, 0, 0, 10])
        try client.request(1)
        var connection = connection()
        connection.received(client.take())
        _ = connection.events()
        connection.answer(1, [":status": "200"], body: ByteBuffer(repeating: 7, count: 25))
        #expect(connection.takeFrames().filter { $0.kind == 0 }.map(\.payload.count) == [10])
        client.frame(0x8, 0, 1, [0, 0, 0, 100])
        connection.received(client.take())
        #expect(connection.events() == [])
        let last = connection.takeFrames()
        #expect(last.map(\.payload.count) == [15])
        #expect(last.map(\.flags) == [1])
        #expect(connection.openStreams == 0)
    }

    @Test func `answers together keep within the window of the connection`() throws {
        var client = FrameClient(settings: [0, 4, 0, 1, 0xFF, 0xFF])
        for stream in [1, 3] as [UInt32] { try client.request(stream) }
        var connection = connection()
        connection.received(client.take())
        _ = connection.events()
        for stream in [1, 3] as [UInt32] {
            connection.answer(stream, [":status": "200"], body: ByteBuffer(repeating: 7, count: 40_000))
        }
        let frames = connection.takeFrames()
        #expect(frames.filter { $0.kind == 0 }.map(\.payload.count).reduce(0, +) == 65_535)
        client.frame(0x8, 0, 0, [0, 0, 0xFF, 0xFF])
        connection.received(client.take())
        _ = connection.events()
        let rest = connection.takeFrames()
        #expect(rest.filter { $0.kind == 0 }.map(\.payload.count).reduce(0, +) == 80_000 - 65_535)
        #expect(connection.openStreams == 0)
    }

    @Test func `an early answer leaves the stream to the client until its body ends`() throws {
        var client = FrameClient()
        try client.request(1, ends: false)
        var connection = connection()
        connection.received(client.take())
        _ = connection.events()
        let isAnswered = connection.answer(1, [":status": "403"], body: ByteBuffer())
        #expect(isAnswered)
        #expect(connection.openStreams == 1)
        client.frame(0x0, 0x1, 1, [4])
        connection.received(client.take())
        #expect(connection.events() == [])
        #expect(connection.openStreams == 0)
        #expect(!connection.isFailed)
    }

    @Test func `an early answer that waits for the client's window is the only one, and is kept`() throws {
        var client = FrameClient(settings: [0, 4, 0, 0, 0, 1])
        try client.request(1, ends: false)
        var connection = connection()
        connection.received(client.take())
        _ = connection.events()
        connection.answer(1, [":status": "410"], body: ByteBuffer(string: "{}"))
        client.frame(0x0, 0x1, 1, [4])
        connection.received(client.take())
        #expect(connection.events() == [])
        #expect(connection.highestAnswering == 1)
        let refused = connection.resetAll(except: [], .refusedStream)
        #expect(refused.isEmpty)
        _ = connection.takeFrames()
        client.frame(0x8, 0, 1, [0, 0, 0, 100])
        connection.received(client.take())
        _ = connection.events()
        #expect(connection.takeFrames().map(\.payload) == [[UInt8(ascii: "}")]])
        #expect(connection.openStreams == 0)
    }

    @Test func `a connection that goes away completes the promised streams and forgets the others`() throws {
        var client = FrameClient()
        for stream in [1, 3, 5] as [UInt32] { try client.request(stream) }
        var connection = connection()
        connection.received(client.take())
        _ = connection.events()
        #expect(connection.goAway(lastStream: 3, .noError, debug: "{}").sorted() == [5])
        let frames = connection.takeFrames()
        let frame = try #require(frames.last)
        #expect(frame.number == 3)
        #expect(frame.payload.suffix(2).elementsEqual("{}".utf8))
        try client.request(7)
        connection.received(client.take())
        #expect(connection.events() == [])
        #expect(!connection.isDrained)
        for stream in [1, 3] as [UInt32] { connection.answer(stream, [":status": "200"], body: ByteBuffer()) }
        #expect(connection.isDrained)
    }
}
