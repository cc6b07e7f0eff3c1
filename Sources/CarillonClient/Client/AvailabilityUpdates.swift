import ServiceLifecycle
import Synchronization

/// The availability of the push service over time: the present value first, then each change.
///
/// Only the newest value waits for a slow reader: a newer one replaces it. ``PushClient/availability`` is the present value.
///
/// Any number of iterations can run at once. They end when the client is released, when their task is cancelled or its service
/// group shuts down gracefully, and when ``PushClient/run()`` ends by such a shutdown.
public struct AvailabilityUpdates: AsyncSequence, Sendable {
    public typealias Element = Availability
    public typealias Failure = Never

    let board: AvailabilityBoard

    /// Begins an iteration that starts with the present value.
    public func makeAsyncIterator() -> Iterator { Iterator(board.subscribe()) }

    /// The position of one reader in the updates.
    public struct Iterator: AsyncIteratorProtocol {
        public typealias Element = Availability
        public typealias Failure = Never

        private var base: AsyncStream<Availability>.Iterator
        private let reader: AsyncStream<Availability>.Continuation

        init(_ subscription: (stream: AsyncStream<Availability>, reader: AsyncStream<Availability>.Continuation)) {
            base = subscription.stream.makeAsyncIterator()
            reader = subscription.reader
        }

        /// Waits for the newest value that this iteration has not returned. Returns nil when the iteration ends.
        public mutating func next(isolation actor: isolated (any Actor)? = #isolation) async -> Availability? {
            let reader = reader
            return await withGracefulShutdownHandler(isolation: actor) {
                await base.next(isolation: actor)
            } onGracefulShutdown: {
                reader.finish()
            }
        }
    }
}

/// The present availability, and the iterations that read it.
final class AvailabilityBoard: Sendable {
    private struct State {
        var present = Availability(network: false, service: false)
        var readers: [UInt64: AsyncStream<Availability>.Continuation] = [:]
        var nextReader: UInt64 = 0
    }

    private let state = Mutex(State())

    deinit {
        for reader in state.withLock({ $0.readers }).values { reader.finish() }
    }

    var present: Availability { state.withLock { $0.present } }

    /// The number of the youngest iteration, for `endIterations`.
    var youngest: UInt64 { state.withLock { $0.nextReader } }

    func post(_ availability: Availability) {
        state.withLock { state in
            guard availability != state.present else { return }
            state.present = availability
            for reader in state.readers.values { reader.yield(availability) }
        }
    }

    func subscribe() -> (stream: AsyncStream<Availability>, reader: AsyncStream<Availability>.Continuation) {
        let (stream, reader) = AsyncStream.makeStream(of: Availability.self, bufferingPolicy: .bufferingNewest(1))
        let number = state.withLock { state in
            state.nextReader += 1
            state.readers[state.nextReader] = reader
            reader.yield(state.present)
            return state.nextReader
        }
        reader.onTermination = { [weak self] _ in
            // The removed value is returned from the closure, so that it is not released inside the lock.
            _ = self?.state.withLock { $0.readers.removeValue(forKey: number) }
        }
        return (stream, reader)
    }

    /// Ends the iterations up to a number.
    func endIterations(upTo youngest: UInt64) {
        let readers = state.withLock { $0.readers.filter { $0.key <= youngest }.map(\.value) }
        for reader in readers { reader.finish() }
    }
}
