import CarillonCore
import CarillonWire
import Foundation
import StoreConformance
import Synchronization
import TestSupport
import Testing

@testable import CarillonSQLite

/// Files of attachments as they lie on disk.
struct AttachmentFolderTests {
    private let directory = TemporaryDirectory()
    private var folder: AttachmentFolder { AttachmentFolder(in: directory.path) }
    private let id = AttachmentID(Bytes16(high: 0xAABB_CCDD_0000_0000, low: 1))
    private var path: String { "\(directory.path)/attachments/aa/bb/\(id)" }

    private func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: path) }

    @Test func `an upload has a name of its own, and the attachment the name of its id`() async throws {
        try await folder.create(id)
        #expect(exists(path + ".part") && !exists(path))
        let attributes = try FileManager.default.attributesOfItem(atPath: path + ".part")
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        let file = try #require(try await folder.openGrowing(id, at: 0))
        try await file.write(SomeBytes("hello"), at: 0)
        _ = try await folder.openGrowing(id, at: 3)
        #expect(try Data(contentsOf: URL(fileURLWithPath: path + ".part")) == Data("hel".utf8))
        try await folder.publish(id)
        #expect(exists(path) && !exists(path + ".part"))
        let whole = try #require(try await folder.open(id))
        try await folder.remove([id])
        #expect(!exists(path))
        #expect(try await whole.read(at: 0, count: 1) == Array("h".utf8), "a reader continues to read it")
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

    @Test func `a file of another name is not listed, and a place that is no directory is refused`() async throws {
        try await folder.create(AttachmentID(Bytes16(high: 0, low: 1)))
        try Data().write(to: URL(fileURLWithPath: "\(directory.path)/attachments/00/00/stranger"))
        let page = try await folder.list(after: nil, before: Timestamp(milliseconds: .max))
        #expect(page.ids == [AttachmentID(Bytes16(high: 0, low: 1))] && page.next == "0")
        #expect(try await folder.list(after: "65535", before: Timestamp(milliseconds: .max)).next == nil)
        for place in ["", "x", "-2", "65536"] {
            await #expect(throws: StoreFault.self) {
                try await folder.list(after: place, before: Timestamp(milliseconds: 0))
            }
        }
    }

    @Test func `bytes that a disk takes in part are cut off, and a call that was interrupted is repeated`() async throws {
        let calls = Mutex(0)
        let folder = AttachmentFolder(in: directory.path) { file, bytes, offset in
            let call = calls.withLock { calls in
                calls += 1
                return calls
            }
            guard call != 2, call != 5 else {
                errno = call == 2 ? EINTR : EIO
                return -1
            }
            return pwrite(file, bytes.baseAddress, min(bytes.count, 2), off_t(offset))
        }
        try await folder.create(id)
        let file = try #require(try await folder.openGrowing(id, at: 0))
        try await file.write(SomeBytes("abcd"), at: 0)
        #expect(calls.withLock { $0 } == 3)
        let fault = await #expect(throws: StoreFault.self) { try await file.write(SomeBytes("efg"), at: 4) }
        #expect(fault?.kind == .unavailable)
        #expect(try Data(contentsOf: URL(fileURLWithPath: path + ".part")) == Data("abcd".utf8))
        try await file.write(SomeBytes("ghi"), at: 4)
        #expect(try Data(contentsOf: URL(fileURLWithPath: path + ".part")) == Data("abcdghi".utf8))
    }

    @Test func `a full disk is distinguished from a broken one`() {
        for cause in [ENOSPC, EDQUOT, EFBIG] { #expect(StoreFault(disk: cause).kind == .full) }
        #expect(StoreFault(disk: EIO).kind == .unavailable)
    }
}
