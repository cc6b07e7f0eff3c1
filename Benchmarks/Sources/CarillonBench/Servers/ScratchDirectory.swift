import Foundation

/// A directory for data, configurations and logs, which goes with the run.
struct ScratchDirectory: Sendable {
    let path: String

    init(under parent: String) throws {
        path = "\(parent)/carillon-bench-\(getpid())"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    func file(_ name: String) -> String { "\(path)/\(name)" }

    func remove(_ name: String) { try? FileManager.default.removeItem(atPath: file(name)) }

    func removeAll() { try? FileManager.default.removeItem(atPath: path) }
}
