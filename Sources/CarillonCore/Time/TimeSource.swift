/// Returns the current time.
package struct TimeSource: Sendable {
    package let now: @Sendable () -> Timestamp
    package init(now: @escaping @Sendable () -> Timestamp) { self.now = now }
}

/// A monotonic clock in nanoseconds since an arbitrary time.
package struct TickSource: Sendable {
    package let now: @Sendable () -> Int64
    package init(now: @escaping @Sendable () -> Int64) { self.now = now }
}

/// A source of random numbers. In a server it must be the system's generator, because identifiers and secrets are made with it.
package struct RandomSource: RandomNumberGenerator, Sendable {
    private let draw: @Sendable () -> UInt64

    package init(draw: @escaping @Sendable () -> UInt64) { self.draw = draw }

    package func next() -> UInt64 { draw() }

    package func bytes(_ count: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count + 7)
        while bytes.count < count {
            withUnsafeBytes(of: draw()) { bytes.append(contentsOf: $0) }
        }
        return Array(bytes.prefix(count))
    }
}

/// Runs work after a delay, on another thread.
package struct Scheduler: Sendable {
    package let run: @Sendable (_ after: Duration, _ work: @escaping @Sendable () -> Void) -> Void

    package init(run: @escaping @Sendable (_ after: Duration, _ work: @escaping @Sendable () -> Void) -> Void) {
        self.run = run
    }
}
