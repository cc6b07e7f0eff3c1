#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// The time until which APNs stores a notification for a device that it cannot reach.
///
/// APNs stores one notification for each app on each device, for at most 30 days.
public struct APNsExpiration: Hashable, Sendable {
    /// The value of the `apns-expiration` header: seconds since 1970.
    public let seconds: Int64

    /// APNs makes one attempt and stores nothing.
    public static let immediately = APNsExpiration(seconds: 0)

    /// APNs stores the notification until the given time.
    public static func at(_ date: Date) -> APNsExpiration {
        APNsExpiration(seconds: WholeSeconds.of(date))
    }

    private init(seconds: Int64) { self.seconds = seconds }
}

/// Dates in the form that APNs requires: whole seconds since 1970.
enum WholeSeconds {
    static func of(_ date: Date) -> Int64 {
        // A date beyond the range of the integer becomes the nearest value instead of a trap.
        Int64(exactly: date.timeIntervalSince1970.rounded(.down)) ?? (date.timeIntervalSince1970 < 0 ? .min : .max)
    }
}
