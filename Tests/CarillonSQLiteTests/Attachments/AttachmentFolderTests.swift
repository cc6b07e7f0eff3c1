import CarillonCore
import CarillonWire
import Foundation
import TestSupport
import Testing

@testable import CarillonSQLite

struct SomeBytes: FileBytes {
    var bytes: [UInt8]
    init(_ bytes: [UInt8]) { self.bytes = bytes }
    init(_ text: String) { bytes = Array(text.utf8) }
    var count: Int { bytes.count }
    func withBytes<Value>(_ body: (UnsafeRawBufferPointer) throws -> Value) rethrows -> Value {
        try bytes.withUnsafeBytes(body)
    }
}

/// Files of attachments as they lie on disk.
struct AttachmentFolderTests {
    private let directory = TemporaryDirectory()
    private var folder: AttachmentFolder { AttachmentFolder(in: directory.path) }
    private let id = AttachmentID(Bytes16(high: 0xAABB_CCDD_0000_0000, low: 1))
    private var path: String { "\(directory.path)/attachments/aa/bb/\(id)" }

    private func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: path) }

    @Test func `a file grows under another name, and is cut to what is known of it`() async throws {
        try await folder.create(id)
        #expect(exists(path + ".part") && !exists(path))
        let attributes = try FileManager.default.attributesOfItem(atPath: path + ".part")
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        await #expect(throws: StoreFault.self) { try await folder.create(id) }
        let file = try #require(try await folder.openGrowing(id, at: 0))
        try await file.write(SomeBytes("hello"), at: 0)
        try await file.sync()
        #expect(try await folder.openGrowing(id, at: 6) == nil, "it is shorter than it was said to be")
        _ = try await folder.openGrowing(id, at: 3)
        #expect(try Data(contentsOf: URL(fileURLWithPath: path + ".part")) == Data("hel".utf8))
        #expect(try await folder.open(id) == nil)
        try await folder.publish(id)
        #expect(exists(path) && !exists(path + ".part"))
        try await folder.publish(id)
        let whole = try #require(try await folder.open(id))
        #expect(try await whole.read(at: 1, count: 10) == Array("el".utf8))
        #expect(try await whole.read(at: 3, count: 10).isEmpty)
        try await folder.remove([id, AttachmentID(Bytes16(high: 0, low: 0))])
        #expect(!exists(path))
        #expect(try await whole.read(at: 0, count: 1) == Array("h".utf8), "who reads it reads on")
        await #expect(throws: StoreFault.self) { try await folder.publish(id) }
        #expect(try await folder.open(id) == nil)
    }

    @Test func `one that got its name before its row knew goes on`() async throws {
        try await folder.create(id)
        try await folder.publish(id)
        #expect(try await folder.openGrowing(id, at: 0) != nil)
        #expect(exists(path + ".part") && !exists(path))
    }

    @Test func `links are not followed`() async throws {
        try await folder.create(id)
        try FileManager.default.removeItem(atPath: path + ".part")
        let outside = directory.path + "/outside"
        try Data("x".utf8).write(to: URL(fileURLWithPath: outside))
        for name in [path, path + ".part"] {
            try FileManager.default.createSymbolicLink(atPath: name, withDestinationPath: outside)
        }
        await #expect(throws: StoreFault.self) { try await folder.open(id) }
        await #expect(throws: StoreFault.self) { try await folder.openGrowing(id, at: 0) }
        #expect(try Data(contentsOf: URL(fileURLWithPath: outside)) == Data("x".utf8))
    }

    @Test func `files are found by their places, once, and those that are newer are not`() async throws {
        let ids = (0..<20).map { AttachmentID(Bytes16(high: UInt64($0) << 50, low: UInt64($0))) }
        for id in ids { try await folder.create(id) }
        try await folder.publish(ids[3])
        try Data().write(to: URL(fileURLWithPath: "\(directory.path)/attachments/00/00/stranger"))
        let future = Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000) + 60_000)
        var found: [AttachmentID] = []
        var place = -1
        while let (some, next) = try await folder.files(after: place, before: future) {
            #expect(next > place)
            found += some
            place = next
        }
        #expect(Set(found) == Set(ids) && found.count == ids.count)
        #expect(try await folder.files(after: -1, before: Timestamp(milliseconds: 0)) == nil)
    }

    @Test func `a disk without room is told from one that is broken`() {
        for cause in [ENOSPC, EDQUOT, EFBIG] { #expect(StoreFault(disk: cause).kind == .full) }
        #expect(StoreFault(disk: EIO).kind == .unavailable)
    }

    @Test func `the digest of a file is that of all of it`() async throws {
        try await folder.create(id)
        let file = try #require(try await folder.openGrowing(id, at: 0))
        try await file.write(SomeBytes(Array(repeating: 0, count: (1 << 20) + 1)), at: 0)
        #expect(
            Data(try await folder.digest(ofGrowing: id)).map { String(format: "%02x", $0) }.joined()
                == "2cb74edba754a81d121c9db6833704a8e7d417e5b13d1a19f4a52f007d644264")
        #expect(try await folder.freeBytes() > 0)
    }
}
