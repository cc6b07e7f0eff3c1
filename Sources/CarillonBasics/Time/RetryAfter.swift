/// Reads the header field `Retry-After` (RFC 9110 section 10.2.3).
package enum RetryAfter {
    /// The longest delay that a peer can request, in seconds.
    package static let longestSeconds: Int64 = 86_400

    /// Returns the delay in whole seconds, at most a day; nil if the value is neither a number of seconds nor a date.
    ///
    /// A decimal fraction is rounded up. A date in the past is a delay of zero.
    ///
    /// - Parameter now: The present time, in milliseconds since 1970.
    package static func duration(_ value: String, at now: Int64) -> Duration? {
        let text = trimmed(value)
        if let seconds = number(text) { return .seconds(seconds) }
        guard let moment = HTTPDate.seconds(text, at: CivilDate.floorDivision(now, by: 1000).quotient) else { return nil }
        let wait = CivilDate.floorDivision(moment * 1000 - now + 999, by: 1000).quotient
        return .seconds(max(0, min(wait, longestSeconds)))
    }

    private static func trimmed(_ value: String) -> String {
        let isBlank: (Character) -> Bool = { $0 == " " || $0 == "\t" }
        let start = value.drop(while: isBlank)
        guard let last = start.lastIndex(where: { !isBlank($0) }) else { return "" }
        return String(start[...last])
    }

    /// Returns the number, rounded up and limited to a day; nil if the text is not a decimal number.
    private static func number(_ text: String) -> Int64? {
        let parts = text.utf8.split(separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
        let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
        guard parts.allSatisfy({ part in !part.isEmpty && part.allSatisfy { digits.contains($0) } }) else { return nil }
        var seconds: Int64 = 0
        for digit in parts[0] { seconds = min(longestSeconds, seconds * 10 + Int64(digit - digits.lowerBound)) }
        if parts.count == 2, parts[1].contains(where: { $0 != digits.lowerBound }) { seconds += 1 }
        return min(seconds, longestSeconds)
    }
}
