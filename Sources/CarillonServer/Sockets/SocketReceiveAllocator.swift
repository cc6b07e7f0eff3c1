import NIOCore

/// Allocates receive buffers for sockets, with a size for frames of a few hundred bytes. The allocator declares that the size can
/// change, so that NIO keeps no buffer for an idle connection: see ``HTTPReceiveAllocator``.
struct SocketReceiveAllocator: RecvByteBufferAllocator {
    func buffer(allocator: ByteBufferAllocator) -> ByteBuffer { allocator.buffer(capacity: 2048) }

    mutating func record(actualReadBytes: Int) -> Bool { true }
}
