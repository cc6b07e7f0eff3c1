import NIOCore

/// Buffers for what a connection for HTTP receives, of a size that follows what came before.
///
/// NIO keeps the first buffer that it is given for as long as the connection lives, and with one read at a time
/// (``readsAtOnce``) none of the others when it is told that the size may change. So the first one is small, and no
/// buffer is kept for a connection that is idle, or whose poll waits.
struct HTTPReceiveAllocator: RecvByteBufferAllocator {
    /// The value of `maxMessagesPerRead` that this is made for.
    static let readsAtOnce: UInt = 1

    /// Bytes of the first buffer, which is kept.
    static let firstBytes = 64

    private var sizes = AdaptiveRecvByteBufferAllocator()
    private var hasRead = false

    func buffer(allocator: ByteBufferAllocator) -> ByteBuffer {
        hasRead ? sizes.buffer(allocator: allocator) : allocator.buffer(capacity: Self.firstBytes)
    }

    mutating func record(actualReadBytes: Int) -> Bool {
        if hasRead {
            _ = sizes.record(actualReadBytes: actualReadBytes)
        } else {
            hasRead = true
        }
        return true
    }
}
