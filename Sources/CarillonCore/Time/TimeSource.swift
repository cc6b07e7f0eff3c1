/// Where the time comes from.
package struct TimeSource: Sendable {
    package let now: @Sendable () -> Timestamp
    package init(now: @escaping @Sendable () -> Timestamp) { self.now = now }
}

/// A clock that is never set: nanoseconds since some moment.
package struct TickSource: Sendable {
    package let now: @Sendable () -> Int64
    package init(now: @escaping @Sendable () -> Int64) { self.now = now }
}

/// Where chance comes from. In a server it must be the system's generator: identifiers and secrets are made of it.
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

/// Runs something a little later, elsewhere.
package struct Scheduler: Sendable {
    package let run: @Sendable (_ after: Duration, _ work: @escaping @Sendable () -> Void) -> Void

    package init(run: @escaping @Sendable (_ after: Duration, _ work: @escaping @Sendable () -> Void) -> Void) {
        self.run = run
    }
}
