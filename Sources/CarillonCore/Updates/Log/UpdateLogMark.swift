/// Identifies a state of an app's log in the store: if two marks are equal, the log has the same live updates.
package struct UpdateLogMark: Equatable, Sendable {
    /// Increases when updates are paused or resumed.
    package var revision: Int64
    /// The latest update, also if it ended; zero without one.
    package var last: UpdateSerial
    /// The number of live updates, including paused ones.
    package var live: Int

    package init(revision: Int64, last: UpdateSerial, live: Int) {
        self.revision = revision
        self.last = last
        self.live = live
    }

    /// The mark of an app that does not exist.
    static let ofNoApp = UpdateLogMark(revision: 0, last: UpdateSerial(0), live: 0)
}
