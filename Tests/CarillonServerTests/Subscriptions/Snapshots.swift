import CarillonCore
import Synchronization
import TestStores
import Testing

/// The state of a store whose process is killed behind a commit.
final class Snapshots: Sendable {
    struct Snapshot: Sendable {
        var copy: StoreCopy
        /// The last position that the test reported.
        var step: Int
    }

    let step = Mutex(0)
    private let all = Mutex<[Snapshot]>([])
    private let store: any Store

    init(of store: any Store) { self.store = store }

    var taken: [Snapshot] { all.withLock { $0 } }

    /// Copies the store after each commit from now on.
    func begin() { stores.onCommit(of: store) { self.take() } }

    func end() { stores.onCommit(of: store, nil) }

    private func take() {
        do {
            let copy = try stores.copy(store)
            all.withLock { $0.append(Snapshot(copy: copy, step: step.withLock { $0 })) }
        } catch {
            Issue.record(error)
        }
    }
}
