#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Moments as the API writes them (RFC 3339, in UTC, with milliseconds).
package enum Timestamp3339 {
    package static func text(_ milliseconds: Int64) -> String {
        let seconds = Double(milliseconds) / 1000
        return Date(timeIntervalSince1970: seconds).formatted(
            .iso8601.year().month().day().time(includingFractionalSeconds: true).timeZone(separator: .omitted))
    }

    /// In milliseconds since 1970; nil for what was not written so.
    package static func milliseconds(_ text: String) -> Int64? {
        guard let date = try? Date(text, strategy: Date.ISO8601FormatStyle(includingFractionalSeconds: true)) else {
            return nil
        }
        return Int64((date.timeIntervalSince1970 * 1000).rounded())
    }
}
