import CarillonWire
import NIOCore
import Synchronization

/// The body of a request, passed from the connection to the routes. The routes receive all available data at once. The amount of
/// unread data is limited, because the connection stops reading when this stream is full.
final class RequestStream: AsyncSequence, Sendable {
    typealias Element = ByteBuffer
    typealias Failure = Refusal

    private struct State {
        var bytes = ByteBuffer()
        var isFull = false
        /// Set when the last bytes were added: nil inside, or the reason why the rest is missing.
        var end: Refusal??
        var reader: CheckedContinuation<Void, Never>?
    }

    /// The largest amount of unread data. Beyond it, reading pauses.
    static let mostBytes = 256 << 10

    private let state = Mutex(State())
    private let onWanted: @Sendable () -> Void
    private let onTaken: @Sendable () -> Void

    /// - Parameters:
    ///   - onWanted: Called when the routes begin to read.
    ///   - onTaken: Called when there is space again.
    init(onWanted: @escaping @Sendable () -> Void, onTaken: @escaping @Sendable () -> Void) {
        self.onWanted = onWanted
        self.onTaken = onTaken
    }

    /// Adds a part. Returns whether the stream is full.
    func add(_ part: ByteBuffer) -> Bool {
        let (isFull, reader) = state.withLock { state in
            state.bytes.writeImmutableBuffer(part)
            if state.bytes.readableBytes >= Self.mostBytes { state.isFull = true }
            defer { state.reader = nil }
            return (state.isFull, state.reader)
        }
        reader?.resume()
        return isFull
    }

    func end(_ fault: Refusal? = nil) {
        let reader = state.withLock { state in
            if state.end == nil { state.end = .some(fault) }
            defer { state.reader = nil }
            return state.reader
        }
        reader?.resume()
    }

    private enum Taken {
        case part(ByteBuffer, makesRoom: Bool)
        case end(Refusal?)
        case nothing
    }

    private func take() -> Taken {
        state.withLock { state in
            guard state.bytes.readableBytes > 0 else { return state.end.map { .end($0) } ?? .nothing }
            defer { (state.bytes, state.isFull) = (ByteBuffer(), false) }
            return .part(state.bytes, makesRoom: state.isFull)
        }
    }

    struct Iterator: AsyncIteratorProtocol {
        let stream: RequestStream

        mutating func next(isolation actor: isolated (any Actor)?) async throws(Refusal) -> ByteBuffer? {
            while true {
                switch stream.take() {
                case .part(let part, let makesRoom):
                    if makesRoom { stream.onTaken() }
                    return part
                case .end(let fault?): throw fault
                case .end(nil): return nil
                case .nothing: await stream.awaitMore()
                }
            }
        }
    }

    func makeAsyncIterator() -> Iterator {
        onWanted()
        return Iterator(stream: self)
    }

    /// A cancelled reader needs no more data.
    private func awaitMore() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isThere = state.withLock { state in
                    let isThere = state.bytes.readableBytes > 0 || state.end != nil
                    if !isThere { state.reader = continuation }
                    return isThere
                }
                if isThere { continuation.resume() }
            }
        } onCancel: {
            end(Refusal(.bodyIncomplete, "The rest of the body is not wanted any more."))
        }
    }
}
