#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// Until when the service keeps a notification for a device that it cannot reach.
///
/// The service keeps one notification for each app on each device, at most 30 days.
public struct APNsExpiration: Hashable, Sendable {
    /// Seconds since 1970, as the `apns-expiration` header has them.
    public let seconds: Int64

    /// One attempt, and nothing is stored.
    public static let immediately = APNsExpiration(seconds: 0)

    /// Kept until the given time.
    public static func at(_ date: Date) -> APNsExpiration {
        APNsExpiration(seconds: WholeSeconds.of(date))
    }

    private init(seconds: Int64) { self.seconds = seconds }
}

/// Dates as the service has them: whole seconds since 1970.
enum WholeSeconds {
    static func of(_ date: Date) -> Int64 {
        // A date beyond the range is the last one, instead of a trap.
        Int64(exactly: date.timeIntervalSince1970.rounded(.down)) ?? (date.timeIntervalSince1970 < 0 ? .min : .max)
    }
}
