import CarillonAPNs
import Synchronization

/// A clock that stands until a test moves it.
final class ManualTime: Sendable {
    private let elapsed = Mutex(Duration.seconds(1000))

    func advance(_ duration: Duration) { elapsed.withLock { $0 += duration } }

    var source: APNsTimeSource {
        APNsTimeSource(
            elapsed: { self.elapsed.withLock { $0 } },
            secondsSince1970: { 1_780_000_000 + self.elapsed.withLock { $0 }.components.seconds })
    }
}
