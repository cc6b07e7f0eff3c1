/// How often something may be done: so often a second in the long run, and so often at once after a rest.
package struct Rate: Equatable, Sendable {
    package var perSecond: Int
    package var burst: Int

    package init(perSecond: Int, burst: Int) {
        precondition(perSecond > 0 && burst > 0, "A rate must allow at least one request.")
        self.perSecond = perSecond
        self.burst = burst
    }
}
