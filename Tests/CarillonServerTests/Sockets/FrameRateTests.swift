import CarillonCore
import CarillonWire
import NIOCore
import Testing

@testable import CarillonServer

@Suite(.timeLimit(.minutes(5)))
struct FrameRateTests {
    @Test func `frames of a socket beyond its rate are read later, and none is lost`() async throws {
        try await ServedConnections.run {
            $0.frameRate = Rate(perSecond: 100, burst: 100)
        } _: { server in
            let (_, credential, _) = try await server.openChannel()
            let peer = try RawPeer(port: server.port)
            try await peer.hello(credential: credential)
            let began = ContinuousClock.now
            // Frames that change nothing count, too.
            for _ in 0..<200 { try peer.sendFrame(#"{"messageType":"nack","version":"x","code":301}"#) }
            try peer.sendFrame(0x9, Array("end".utf8))
            _ = try await peer.read(until: "end")
            #expect(ContinuousClock.now - began >= .milliseconds(900))
        }
    }

    @Test func `a socket within its rate does not wait`() async throws {
        try await ServedConnections.run {
            $0.frameRate = Rate(perSecond: 1, burst: 1000)
        } _: { server in
            let (_, credential, _) = try await server.openChannel()
            let peer = try RawPeer(port: server.port)
            try await peer.hello(credential: credential)
            for _ in 0..<900 { try peer.sendFrame(#"{"messageType":"nack","version":"x","code":301}"#) }
            try peer.sendFrame(0x9, Array("end".utf8))
            _ = try await peer.read(until: "end")
        }
    }

    @Test func `frames that make up no message yet are counted`() {
        var reader = MessageReader()
        var bytes = ByteBuffer(bytes: [0x01, 0x80, 0, 0, 0, 0])
        for _ in 0..<5 { bytes.writeBytes([0x00, 0x80, 0, 0, 0, 0]) }
        reader.received(bytes)
        #expect(reader.next() == nil)
        #expect(reader.takeFrameCount() == 6)
        #expect(reader.takeFrameCount() == 0)
    }
}
