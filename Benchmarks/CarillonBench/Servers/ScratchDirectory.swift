import Foundation

/// A directory for data, configurations and logs, which is removed after the run.
struct ScratchDirectory: Sendable {
    let path: String

    init(under parent: String) throws {
        path = "\(parent)/carillon-bench-\(getpid())"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    func file(_ name: String) -> String { "\(path)/\(name)" }

    func remove(_ name: String) { try? FileManager.default.removeItem(atPath: file(name)) }

    /// Returns the size of all files in one of its directories.
    func bytes(in name: String) throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: file(name)).reduce(0) { sum, entry in
            let attributes = try FileManager.default.attributesOfItem(atPath: "\(file(name))/\(entry)")
            return sum + (attributes[.size] as? Int ?? 0)
        }
    }

    func removeAll() { try? FileManager.default.removeItem(atPath: path) }
}
