import Synchronization

/// Gives envelopes their places: each is greater than all before it. It starts after the last that the store knows.
package final class PositionSource: Sendable {
    private let last: Atomic<Int64>

    package init(after last: Int64) { self.last = Atomic(last) }

    package func next() -> Int64 { last.wrappingAdd(1, ordering: .relaxed).newValue }
}
