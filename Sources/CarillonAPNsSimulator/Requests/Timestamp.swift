/// A point in time of the simulator's own clock, in milliseconds since 1970.
struct Timestamp: Hashable, Comparable, Sendable {
    var milliseconds: Int64

    var seconds: Int64 { milliseconds / 1000 }

    static func seconds(_ seconds: Int64) -> Timestamp { Timestamp(milliseconds: seconds * 1000) }

    static func < (left: Timestamp, right: Timestamp) -> Bool { left.milliseconds < right.milliseconds }

    static func + (moment: Timestamp, duration: Duration) -> Timestamp {
        Timestamp(milliseconds: moment.milliseconds + duration.milliseconds)
    }

    static func - (moment: Timestamp, duration: Duration) -> Timestamp {
        Timestamp(milliseconds: moment.milliseconds - duration.milliseconds)
    }
}

extension Duration {
    var milliseconds: Int64 { components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000 }

    static func hours(_ hours: Int64) -> Duration { .seconds(hours * 3600) }
    static func minutes(_ minutes: Int64) -> Duration { .seconds(minutes * 60) }
    static func days(_ days: Int64) -> Duration { .hours(days * 24) }
}
