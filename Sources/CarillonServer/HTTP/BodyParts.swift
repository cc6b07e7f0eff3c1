import HTTPTypes
import Hummingbird
import NIOCore

/// The body of a response in parts. Each part is returned when the reader requests it, and the next part is created meanwhile.
struct BodyParts: AsyncSequence, Sendable {
    private let parts: AsyncThrowingStream<[UInt8], any Error>
    private let requests: AsyncStream<Void>.Continuation

    /// - Parameters:
    ///   - bytes: The largest part.
    ///   - ended: Called once, when the whole body was created, or its reader stopped reading.
    init(of body: ResponseBody, upTo bytes: Int, then ended: @escaping @Sendable () -> Void) {
        let (parts, output) = AsyncThrowingStream.makeStream(of: [UInt8].self)
        let (wanted, requests) = AsyncStream.makeStream(of: Void.self)
        // The task ends with the body, or is cancelled.
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
        self.requests = requests
    }

    struct Iterator: AsyncIteratorProtocol {
        fileprivate var parts: AsyncThrowingStream<[UInt8], any Error>.Iterator
        fileprivate let requests: AsyncStream<Void>.Continuation

        mutating func next(isolation actor: isolated (any Actor)?) async throws -> [UInt8]? {
            requests.yield()
            if let part = try await parts.next(isolation: actor) { return part }
            // The iterator of a stream returns nil also if the task is cancelled. The body has not ended then.
            try Task.checkCancellation()
            return nil
        }
    }

    func makeAsyncIterator() -> Iterator { Iterator(parts: parts.makeAsyncIterator(), requests: requests) }

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
