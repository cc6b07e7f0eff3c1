/// A rate limit: the number of operations per second on average, and the number that are allowed at once after a pause.
package struct Rate: Equatable, Sendable {
    package var perSecond: Int
    package var burst: Int

    package init(perSecond: Int, burst: Int) {
        precondition(perSecond > 0 && burst > 0, "A rate must allow at least one request.")
        self.perSecond = perSecond
        self.burst = burst
    }
}
