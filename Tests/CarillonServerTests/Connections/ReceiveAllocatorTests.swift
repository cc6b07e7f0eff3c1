import NIOCore
import Testing

@testable import CarillonServer

struct ReceiveAllocatorTests {
    /// The buffers that NIO keeps for one connection.
    private var pool = NIOPooledRecvBufferAllocator(
        capacity: Int(HTTPReceiveAllocator.readsAtOnce), recvAllocator: HTTPReceiveAllocator())

    private mutating func read(_ bytes: Int) -> ByteBuffer {
        let (buffer, _) = pool.buffer(allocator: ByteBufferAllocator()) { buffer in
            buffer.writeRepeatingByte(1, count: min(bytes, buffer.writableBytes))
        }
        pool.record(actualReadBytes: buffer.readableBytes)
        return buffer
    }

    @Test("a connection keeps its first buffer, which is small, and no other")
    mutating func smallFirstBuffer() {
        #expect(read(200).capacity == HTTPReceiveAllocator.firstBytes)
        for _ in 0..<3 {
            var buffer = read(200)
            #expect(buffer.capacity >= 1024)
            let isAlone = buffer.modifyIfUniquelyOwned { _ in true }
            #expect(isAlone == true)
        }
        #expect(pool.count == 1)
    }

    @Test("buffers grow with the received data")
    mutating func growth() {
        for _ in 0..<10 { _ = read(.max) }
        #expect(read(.max).capacity == 65_536)
    }

    @Test("a socket keeps no buffer but its connection's first")
    mutating func socket() {
        _ = read(64)
        pool.recvAllocator = SocketReceiveAllocator()
        for _ in 0..<3 {
            var buffer = read(300)
            #expect(buffer.capacity == 2048)
            let isAlone = buffer.modifyIfUniquelyOwned { _ in true }
            #expect(isAlone == true)
        }
    }
}
