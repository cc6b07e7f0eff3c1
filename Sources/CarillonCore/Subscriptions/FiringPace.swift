/// The highest rate at which a device is notified about an item. Firings in between are throttled: the newest waits, or as many
/// as fit into the buffer.
package struct FiringPace: Equatable, Sendable {
    /// Firings per second.
    package var maxFrequency: Double
    /// The number of firings of an item that can wait; if nil, the item's mode sets the number.
    package var bufferSize: Int?

    package init(maxFrequency: Double, bufferSize: Int? = nil) {
        self.maxFrequency = maxFrequency
        self.bufferSize = bufferSize
    }

    package static let frequencies = 0.00001...1000.0
    package static let largestBuffer = 100

    /// The minimum interval between two deliveries.
    package var milliseconds: Int64 { Int64((1000 / maxFrequency).rounded(.up)) }

    /// The number of firings that can wait. Without ``bufferSize`` only the newest waits for a `merge` item, and up to
    /// ``largestBuffer`` firings wait for a `distinct` item.
    package func buffer(of mode: ItemState.Mode) -> Int { bufferSize ?? (mode == .merge ? 1 : Self.largestBuffer) }
}
