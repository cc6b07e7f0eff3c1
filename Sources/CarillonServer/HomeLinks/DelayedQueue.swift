import NIOCore

/// The elements that wait on a link, in their order. Each can be taken from a certain time on.
struct DelayedQueue<Element: Sendable>: Sendable {
    typealias Instant = ContinuousClock.Instant

    private struct Waiting: Sendable {
        var element: Element
        var bytes: Int
        var due: Instant
    }

    private var elements = CircularBuffer<Waiting>()
    /// The time of the last element.
    private var lastDue: Instant?
    /// The bytes of all elements.
    private(set) var bytes = 0

    var count: Int { elements.count }

    /// The time from which the first element can be taken; nil if the queue is empty.
    var due: Instant? { elements.first?.due }

    /// Adds an element. It can be taken from the given time on, but not before the earlier elements.
    mutating func append(_ element: Element, bytes: Int, due: Instant) {
        let due = max(due, lastDue ?? due)
        lastDue = due
        self.bytes += bytes
        elements.append(Waiting(element: element, bytes: bytes, due: due))
    }

    mutating func popFirst() -> (element: Element, bytes: Int)? {
        guard !elements.isEmpty else { return nil }
        let first = elements.removeFirst()
        bytes -= first.bytes
        return (first.element, first.bytes)
    }

    /// Removes elements, and keeps the order of the others.
    ///
    /// - Returns: The number of the removed elements and of their bytes.
    mutating func removeAll(where isUnwanted: (Element) -> Bool) -> (count: Int, bytes: Int) {
        let before = (count: count, bytes: bytes)
        elements.removeAll { isUnwanted($0.element) }
        bytes = elements.reduce(0) { $0 + $1.bytes }
        return (before.count - count, before.bytes - bytes)
    }
}
