import HTTPTypes
import Hummingbird
import NIOCore

/// The body of a response in parts. Each part is handed over when the reader wants it, and the next is made meanwhile.
struct BodyParts: AsyncSequence, Sendable {
    private let parts: AsyncThrowingStream<[UInt8], any Error>
    private let wishes: AsyncStream<Void>.Continuation

    /// - Parameters:
    ///   - bytes: The largest part.
    ///   - ended: Called once, when the body was handed over, or nobody reads it any more.
    init(of body: ResponseBody, upTo bytes: Int, then ended: @escaping @Sendable () -> Void) {
        let (parts, output) = AsyncThrowingStream.makeStream(of: [UInt8].self)
        let (wanted, wishes) = AsyncStream.makeStream(of: Void.self)
        // Ends with the body, or is cancelled.
        let task = Task {
            do {
                try await body.write(Writer(wanted: wanted.makeAsyncIterator(), output: output, mostBytes: bytes))
                output.finish()
            } catch {
                output.finish(throwing: error)
            }
            ended()
        }
        output.onTermination = { _ in task.cancel() }
        self.parts = parts
        self.wishes = wishes
    }

    struct Iterator: AsyncIteratorProtocol {
        fileprivate var parts: AsyncThrowingStream<[UInt8], any Error>.Iterator
        fileprivate let wishes: AsyncStream<Void>.Continuation

        mutating func next(isolation actor: isolated (any Actor)?) async throws -> [UInt8]? {
            wishes.yield()
            if let part = try await parts.next(isolation: actor) { return part }
            // Whoever is cancelled has not read the end.
            try Task.checkCancellation()
            return nil
        }
    }

    func makeAsyncIterator() -> Iterator { Iterator(parts: parts.makeAsyncIterator(), wishes: wishes) }

    private struct Writer: ResponseBodyWriter {
        var wanted: AsyncStream<Void>.Iterator
        let output: AsyncThrowingStream<[UInt8], any Error>.Continuation
        let mostBytes: Int

        mutating func write(_ buffer: ByteBuffer) async throws {
            var rest = buffer
            while rest.readableBytes > 0 {
                guard await wanted.next(isolation: #isolation) != nil else { throw CancellationError() }
                output.yield(rest.readBytes(length: Swift.min(mostBytes, rest.readableBytes)) ?? [])
            }
        }

        func finish(_ trailingHeaders: HTTPFields?) {}
    }
}
