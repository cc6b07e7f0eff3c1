import NIOCore

/// Buffers for what a socket receives, of a size for frames of a few hundred bytes. It does not say how large the next
/// one will be, so that no buffer is kept for a connection that is idle.
struct SocketReceiveAllocator: RecvByteBufferAllocator {
    func buffer(allocator: ByteBufferAllocator) -> ByteBuffer { allocator.buffer(capacity: 2048) }

    mutating func record(actualReadBytes: Int) -> Bool { false }
}
