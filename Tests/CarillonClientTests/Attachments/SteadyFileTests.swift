import Foundation
import TestSupport
import Testing

@testable import CarillonClient

/// Files that change while they are sealed.
struct SteadyFileTests {
    private let directory = TemporaryDirectory()

    private var path: String { directory.path + "/file" }
    private var sealed: String { directory.path + "/sealed" }

    private func write(_ text: String) throws { try Data(text.utf8).write(to: URL(fileURLWithPath: path)) }

    /// Changes the file in the given attempts, after it was read.
    private func seal(changing change: () throws -> Void, in attempts: Set<Int>) throws -> (String, keys: [Data]) {
        var keys: [Data] = []
        let (made, key) = try SteadyFile(path: path).seal(to: sealed) { (source, sealed, key) throws(PushError) in
            keys.append(key)
            let made = try SealedFile.make(of: source, at: sealed, key: key)
            do {
                if attempts.contains(keys.count) { try change() }
            } catch {
                throw PushError(.fileInvalid, "\(error)")
            }
            return made
        }
        #expect(key == keys.last)
        let manifest = AttachmentManifest(
            id: String(repeating: "0", count: 36), key: key, length: made.length, digest: made.digest, expiresAt: .now)
        let opened = directory.path + "/opened"
        let file = try OpeningFile(manifest, into: DiskFile(opened, .going))
        try file.take(try Data(contentsOf: URL(fileURLWithPath: sealed)))
        try file.finish()
        return (String(decoding: try Data(contentsOf: URL(fileURLWithPath: opened)), as: UTF8.self), keys)
    }

    @Test func `a file that stays as it is is sealed once`() throws {
        try write("one")
        let (text, keys) = try seal(changing: {}, in: [])
        #expect(text == "one" && keys.count == 1)
    }

    @Test(arguments: ["size", "time", "inode"])
    func `a file that changed is sealed once more, with another key`(_ what: String) throws {
        try write("one")
        let (path, other) = (path, directory.path + "/other")
        let early = Date(timeIntervalSince1970: 1_000_000)
        try FileManager.default.setAttributes([.modificationDate: early], ofItemAtPath: path)
        let (text, keys) = try seal(
            changing: {
                switch what {
                case "size":
                    let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
                    try handle.write(contentsOf: Data("three".utf8))
                    try handle.close()
                    try FileManager.default.setAttributes([.modificationDate: early], ofItemAtPath: path)
                case "time":
                    let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
                    try handle.write(contentsOf: Data("two".utf8))
                    try handle.close()
                default:
                    try Data("two".utf8).write(to: URL(fileURLWithPath: other))
                    try FileManager.default.setAttributes([.modificationDate: early], ofItemAtPath: other)
                    try FileManager.default.removeItem(atPath: path)
                    try FileManager.default.moveItem(atPath: other, toPath: path)
                }
            }, in: [1])
        #expect(text == (what == "size" ? "three" : "two"))
        #expect(keys.count == 2 && keys[0] != keys[1])
    }

    @Test func `a file that changes each time is not sent`() throws {
        try write("one")
        let fault = #expect(throws: PushError.self) {
            var length = 10
            _ = try seal(
                changing: {
                    length += 1
                    try write(String(repeating: "x", count: length))
                }, in: [1, 2, 3])
        }
        #expect(fault?.code == .attachmentChanged)
        #expect(!FileManager.default.fileExists(atPath: sealed))
        #expect(ServiceError(PushError(.attachmentChanged, "")).code == .attachmentChanged)
    }

    @Test func `a file that changed twice is not read a third time`() throws {
        try write("one")
        var changes = 0
        let fault = #expect(throws: PushError.self) {
            _ = try seal(
                changing: {
                    changes += 1
                    try write(String(repeating: "x", count: 10 + changes))
                }, in: [1, 2])
        }
        #expect(fault?.code == .attachmentChanged)
        #expect(changes == 2)
    }
}
