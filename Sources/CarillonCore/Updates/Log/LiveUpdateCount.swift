/// The number of live updates, and how many of them are paused.
package struct LiveUpdateCount: Equatable, Sendable {
    package var live = 0
    package var paused = 0

    package init(live: Int = 0, paused: Int = 0) {
        self.live = live
        self.paused = paused
    }
}
