package import CarillonExpression
import Foundation
import Synchronization

/// The zones of the system's tz database.
package enum TimeZones {
    /// The cache of names, including invalid ones.
    private static let known = Mutex<[String: TimeZone?]>([:])
    private static let mostKnown = 2000

    @Sendable package static func offset(_ name: String, at instant: ExpressionTimestamp) -> Int? {
        zone(name)?.secondsFromGMT(for: Date(timeIntervalSince1970: Double(instant.seconds)))
    }

    static func zone(_ name: String) -> TimeZone? {
        if let zone = known.withLock({ $0[name] }) { return zone }
        let zone = isName(name) ? TimeZone(identifier: ofGreenwich.contains(name) ? "GMT" : name) : nil
        known.withLock { known in
            if known.count >= mostKnown { known.removeAll() }
            known[name] = .some(zone)
        }
        return zone
    }

    /// `TimeZone` also accepts offsets such as GMT+3 and abbreviations such as PST, which the database does not contain.
    private static func isName(_ name: String) -> Bool {
        if name.contains("/") { return !name.contains("GMT") || name.hasPrefix("Etc/") }
        return withoutRegion.contains(name)
    }

    private static let ofGreenwich: Set = ["GMT0", "GMT+0", "GMT-0", "Greenwich"]

    /// The names in the database without a region.
    private static let withoutRegion: Set = [
        "CET", "CST6CDT", "Cuba", "EET", "EST", "EST5EDT", "Egypt", "Eire", "GB", "GB-Eire", "GMT", "GMT+0", "GMT-0", "GMT0",
        "Greenwich", "HST", "Hongkong", "Iceland", "Iran", "Israel", "Jamaica", "Japan", "Kwajalein", "Libya", "MET", "MST",
        "MST7MDT", "NZ", "NZ-CHAT", "Navajo", "PRC", "PST8PDT", "Poland", "Portugal", "ROC", "ROK", "Singapore", "Turkey",
        "UCT", "UTC", "Universal", "W-SU", "WET", "Zulu",
    ]
}
