import NIOCore

/// Buffers for what a socket receives, of a size for frames of a few hundred bytes. It says that the size may change,
/// so that no buffer is kept for a connection that is idle: see ``HTTPReceiveAllocator``.
struct SocketReceiveAllocator: RecvByteBufferAllocator {
    func buffer(allocator: ByteBufferAllocator) -> ByteBuffer { allocator.buffer(capacity: 2048) }

    mutating func record(actualReadBytes: Int) -> Bool { true }
}
