import NIOCore

/// Buffers for what a connection for HTTP receives, of a size that follows what came before. It does not say how large the next one will be,
/// so that no buffer is kept for a connection that is idle, or whose poll waits.
struct HTTPReceiveAllocator: RecvByteBufferAllocator {
    private var sizes = AdaptiveRecvByteBufferAllocator()

    func buffer(allocator: ByteBufferAllocator) -> ByteBuffer { sizes.buffer(allocator: allocator) }

    mutating func record(actualReadBytes: Int) -> Bool { sizes.record(actualReadBytes: actualReadBytes) }
}
