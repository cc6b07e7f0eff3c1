import Foundation

/// A directory that is removed with its last user.
package final class TemporaryDirectory: Sendable {
    package let path: String

    package init() {
        path = FileManager.default.temporaryDirectory.appendingPathComponent("carillon-\(UUID().uuidString)").path
        do {
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        } catch {
            preconditionFailure("no temporary directory: \(error)")
        }
    }

    deinit { remove() }

    private func remove() {
        do {
            try FileManager.default.removeItem(atPath: path)
        } catch {
            print("\(path) stays behind: \(error)")
        }
    }

    /// The path of a directory that is removed when the tests end.
    package static func make() throws -> String {
        let path = ofProcess.path + "/" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        return path
    }

    private static let ofProcess: TemporaryDirectory = {
        atexit { TemporaryDirectory.ofProcess.remove() }
        return TemporaryDirectory()
    }()
}
