import CarillonExpression
import Foundation
import Synchronization

/// The zones of the system's tz database.
enum TimeZones {
    /// A few hundred names at the most.
    private static let found = Mutex<[String: TimeZone]>([:])

    @Sendable static func offset(_ name: String, at instant: ExpressionTimestamp) -> Int? {
        zone(name)?.secondsFromGMT(for: Date(timeIntervalSince1970: Double(instant.seconds)))
    }

    private static func zone(_ name: String) -> TimeZone? {
        if let zone = found.withLock({ $0[name] }) { return zone }
        // `TimeZone` also takes offsets such as GMT+3 and abbreviations such as PST, which the database does not have.
        let isName =
            name.contains("/") || TimeZone.abbreviationDictionary[name] == nil
            || ["GMT", "EST", "MST", "HST"].contains(name)
        guard isName, !name.contains("GMT") || name == "GMT" || name.hasPrefix("Etc/"), let zone = TimeZone(identifier: name)
        else {
            return nil
        }
        found.withLock { $0[name] = zone }
        return zone
    }
}
