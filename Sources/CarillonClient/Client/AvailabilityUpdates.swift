import Synchronization

/// The availability of the push service over time: the present value first, then each change.
///
/// A slow reader misses intermediate values, never the newest one. Any number of iterations may go on at once; they
/// end when the client is released or their task is cancelled.
public struct AvailabilityUpdates: AsyncSequence, Sendable {
    public typealias Element = Availability
    public typealias Failure = Never

    let board: AvailabilityBoard

    /// Begins an iteration that starts with the present value.
    public func makeAsyncIterator() -> Iterator { Iterator(base: board.subscribe().makeAsyncIterator()) }

    /// One reader's place in the updates.
    public struct Iterator: AsyncIteratorProtocol {
        public typealias Element = Availability
        public typealias Failure = Never

        var base: AsyncStream<Availability>.Iterator

        /// Waits for the newest value that this iteration has not seen; nil when the client is gone or the task was
        /// cancelled.
        public mutating func next(isolation actor: isolated (any Actor)? = #isolation) async -> Availability? {
            await base.next(isolation: actor)
        }
    }
}

/// Where the present availability is posted, and who reads it.
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

    func post(_ availability: Availability) {
        state.withLock { state in
            guard availability != state.present else { return }
            state.present = availability
            for reader in state.readers.values { reader.yield(availability) }
        }
    }

    func subscribe() -> AsyncStream<Availability> {
        let (stream, reader) = AsyncStream.makeStream(of: Availability.self, bufferingPolicy: .bufferingNewest(1))
        let number = state.withLock { state in
            state.nextReader += 1
            state.readers[state.nextReader] = reader
            reader.yield(state.present)
            return state.nextReader
        }
        reader.onTermination = { [weak self] _ in
            // The value is taken out of the lock, so that nothing is released inside it.
            _ = self?.state.withLock { $0.readers.removeValue(forKey: number) }
        }
        return stream
    }
}
