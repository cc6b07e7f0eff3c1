import Foundation

/// The number of homes of the servers that tests start: `CARILLON_TEST_HOMES`, or 1. A test of one home sets its own number.
package enum TestHomes {
    package static let count =
        ProcessInfo.processInfo.environment["CARILLON_TEST_HOMES"].flatMap { Int($0) } ?? 1

    /// The options of `carillon serve` for this number.
    package static var options: [String] { count == 1 ? [] : ["--homes", String(count)] }
}
