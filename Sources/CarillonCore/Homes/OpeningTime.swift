/// The time at which a device sent its proof over a connection. Of two connections of the device, the later one is its session.
///
/// Times of one process are comparable, also if the clock of the machine is set back.
package struct OpeningTime: Comparable, Sendable {
    private let nanoseconds: Int64
    private static let start = ContinuousClock.now

    package init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    package static func now() -> OpeningTime {
        let (seconds, attoseconds) = start.duration(to: .now).components
        return OpeningTime(nanoseconds: seconds * 1_000_000_000 + attoseconds / 1_000_000_000)
    }

    package static func < (one: OpeningTime, other: OpeningTime) -> Bool { one.nanoseconds < other.nanoseconds }
}
