/// The number of an app in the store. A number is never used again.
package struct AppSerial: Hashable, Sendable {
    package var rawValue: Int64
    package init(_ rawValue: Int64) { self.rawValue = rawValue }
}
