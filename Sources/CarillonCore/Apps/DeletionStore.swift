/// Removes the rows of deleted apps and devices in parts. Methods that write are atomic and durable, as ``Store`` describes.
package protocol DeletionStore: Sendable {
    /// Does the next part of the deletions of apps and devices, about `limit` rows, in one transaction. A call after a crash
    /// continues after the last committed part.
    ///
    /// Devices of deleted apps are removed with their channels, and messages of deleted devices end as ``Outcome/gone``.
    func continueDeletions(at now: Timestamp, limit: Int) async throws -> DeletionStep
}

package struct DeletionStep: Equatable, Sendable {
    /// The devices and channels that were removed. Their sessions must be ended.
    package var removed: RemovedDevices
    /// Whether all deletions are complete.
    package var isDone: Bool

    package init(removed: RemovedDevices = .init(), isDone: Bool) {
        self.removed = removed
        self.isDone = isDone
    }
}
