import CarillonAPNs
import Synchronization

/// A clock that only a test advances.
final class ManualTime: Sendable {
    private final class Clock: Sendable {
        let passed = Mutex(Duration.zero)
        let wall: Mutex<Int64>

        init(wall: Int64) { self.wall = Mutex(wall) }
    }

    private let clock: Clock
    let source: APNsTimeSource

    /// - Parameter wall: The first time of the wall clock, in seconds since 1970.
    init(wall: Int64 = 1_780_000_000) {
        let clock = Clock(wall: wall)
        self.clock = clock
        source = APNsTimeSource(
            elapsed: { Duration.seconds(1000) + clock.passed.withLock { $0 } },
            secondsSince1970: { clock.wall.withLock { $0 } + clock.passed.withLock { $0 }.components.seconds })
    }

    func advance(_ duration: Duration) { clock.passed.withLock { $0 += duration } }

    /// Sets the wall clock alone.
    func setWall(by seconds: Int64) { clock.wall.withLock { $0 += seconds } }
}
