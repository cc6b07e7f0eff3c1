import Foundation
import TestSupport
import Testing

@testable import CarillonClient

/// Received files that are removed.
struct MessageFilesTests {
    private let directory = TemporaryDirectory()
    private let logs = LogCatcher()

    private var root: String { directory.path + "/Inbox" }

    /// - Parameter isFailing: Whether files cannot be removed.
    private func files(isFailing: Bool) -> MessageFiles {
        MessageFiles(root: root, logger: logs.logger) { path in
            if isFailing { throw CocoaError(.fileWriteNoPermission) }
            try FileManager.default.removeItem(atPath: path)
        }
    }

    private func put(_ path: String) throws {
        let file = root + "/" + path
        try FileManager.default.createDirectory(
            atPath: DiskFile.directory(of: file), withIntermediateDirectories: true)
        try Data([1]).write(to: URL(fileURLWithPath: file))
    }

    private func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: root + "/" + path) }

    @Test func `received files that cannot be removed are moved away, and removed at the next start`() throws {
        try put("a/1/f")
        try put("a/2/f")
        try put(".gathering/7/f")
        let failing = files(isFailing: true)
        failing.removeMessages(of: ["a/1/f"])
        failing.discard(7)
        #expect(!exists("a/1") && exists("a/2/f") && !exists(".gathering/7"))
        #expect(exists(".removed/0/f") && exists(".removed/1/f"))
        #expect(
            logs.lines
                == ["a/1", ".gathering/7"].map { path in
                    let code = CocoaError.Code.fileWriteNoPermission.rawValue
                    return "warning cannot remove file; retrying at the next start code=\(code) path=\(path)"
                })
        files(isFailing: false).sweep(except: [])
        #expect(!exists(".removed") && exists("a/2/f"))
        #expect(logs.lines.count == 2)
    }

    @Test func `the received files of a former user are moved away if they cannot be removed`() throws {
        try put("a/1/f")
        try put(".gathering/7/f")
        let failing = files(isFailing: true)
        failing.removeAll()
        failing.removeAll()
        #expect(try FileManager.default.contentsOfDirectory(atPath: root) == [".removed"])
        #expect(logs.warnings.count == 2)
        files(isFailing: false).sweep(except: [7])
        #expect(!exists(".removed"))
    }

    @Test func `a file that cannot be moved away either is logged as an error`() {
        files(isFailing: true).removeMessages(of: ["a/1/f"])
        #expect(logs.lines.map { String($0.prefix(26)) } == ["error cannot remove file c"])
    }

    @Test func `files that do not exist are removed without a warning`() {
        let files = files(isFailing: false)
        files.removeMessages(of: ["a/1/f"])
        files.discard(7)
        files.sweep(except: [])
        files.removeAll()
        #expect(logs.lines.isEmpty)
    }
}
