import NIOCore

/// Allocates receive buffers for HTTP connections. The size follows the size of earlier reads.
///
/// NIO keeps its first buffer during the whole life of a connection. With one read at a time (``readsAtOnce``), NIO keeps no
/// other buffer if the size can change. The first buffer is therefore small, and an idle connection or a waiting poll uses no
/// other buffer.
struct HTTPReceiveAllocator: RecvByteBufferAllocator {
    /// The required value of `maxMessagesPerRead`.
    static let readsAtOnce: UInt = 1

    /// The size of the first buffer in bytes. NIO keeps this buffer.
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
