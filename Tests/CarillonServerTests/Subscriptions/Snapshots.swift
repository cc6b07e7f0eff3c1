import Foundation
import Synchronization

/// What a process leaves on disk that is killed behind a commit.
final class Snapshots: Sendable {
    struct Snapshot: Sendable {
        var directory: String
        /// What the test said last of where it was.
        var step: Int
    }

    let step = Mutex(0)
    private let all = Mutex<[Snapshot]>([])
    private let directory: String

    /// - Parameter directory: Of a store.
    init(of directory: String) { self.directory = directory }

    var taken: [Snapshot] { all.withLock { $0 } }

    func take() {
        let target = directory + "-\(all.withLock { $0.count })"
        try? FileManager.default.createDirectory(atPath: target, withIntermediateDirectories: true)
        let files = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
        for file in files where file.contains(".db") || file.contains(".sqlite") {
            try? FileManager.default.copyItem(atPath: "\(directory)/\(file)", toPath: "\(target)/\(file)")
        }
        all.withLock { $0.append(Snapshot(directory: target, step: step.withLock { $0 })) }
    }
}
