import Crypto
import Foundation
import TestSupport
import Testing

@testable import CarillonClient

/// Files that are sealed, and opened again.
struct SealedFileTests {
    private let directory = TemporaryDirectory()
    private let key = Data(repeating: 7, count: 32)
    private static let chunk = ChunkSeal.chunkBytes

    private func path(_ name: String) -> String { directory.path + "/" + name }

    private func content(_ length: Int) -> Data {
        var random = SeededRandom(seed: UInt64(length))
        let words = (0..<length / 8 + 1).map { _ in random.next() }
        return words.withUnsafeBytes { Data($0.prefix(length)) }
    }

    private func seal(_ content: Data) throws -> (sealed: Data, manifest: AttachmentManifest) {
        let name = UUID().uuidString
        try content.write(to: URL(fileURLWithPath: path(name)))
        let made = try SealedFile.make(
            of: DiskFile(path(name), .reading), at: DiskFile(path(name + ".sealed"), .making), key: key)
        let sealed = try Data(contentsOf: URL(fileURLWithPath: path(name + ".sealed")))
        return (sealed, manifest(made.length, made.digest))
    }

    private func manifest(_ length: Int64, _ digest: Data) -> AttachmentManifest {
        AttachmentManifest(
            id: String(repeating: "0", count: 36), key: key, length: length, digest: digest, expiresAt: .now)
    }

    /// Nil where it is damaged.
    private func open(_ sealed: Data, _ manifest: AttachmentManifest, by step: Int = 100_000) throws -> Data? {
        let name = path(UUID().uuidString)
        do throws(PushError) {
            let file = try OpeningFile(manifest, into: DiskFile(name, .going))
            var rest = sealed
            while !rest.isEmpty {
                try file.take(Data(rest.prefix(step)))
                rest = Data(rest.dropFirst(step))
            }
            try file.finish()
        } catch {
            #expect(error.code == .attachmentDamaged)
            return nil
        }
        return try Data(contentsOf: URL(fileURLWithPath: name))
    }

    @Test(arguments: [0, 1, 65_535, 65_536, 65_537, 131_073, 16 * 65_536, 16 * 65_536 + 1, 32 * 65_536])
    func `a sealed file of any length opens to the same content, in parts of any size`(_ length: Int) throws {
        let content = content(length)
        let (sealed, manifest) = try seal(content)
        #expect(Int64(sealed.count) == ChunkSeal.sealedLength(of: Int64(length)) && manifest.length == Int64(length))
        let padded = Int(ChunkSeal.paddedLength(of: Int64(length)))
        #expect(sealed.count == padded + 16 * max(1, (padded + 65_535) / 65_536))
        #expect(Data(SHA256.hash(data: sealed)) == manifest.digest)
        for step in [length < 2 ? 1 : 9999, 65_552, 65_553, .max] {
            #expect(try open(sealed, manifest, by: step) == content)
        }
    }

    @Test func `a padded length exceeds the length by at most 11.64 %, and has at most 17 values for each power of two`() {
        #expect([0, 1, 2, 3, 8, 9, 16, 17, 1 << 30, 1 << 40].allSatisfy { ChunkSeal.paddedLength(of: $0) >= $0 })
        #expect([0, 1, 2, 1 << 10, 1 << 30, 1 << 40].allSatisfy { ChunkSeal.paddedLength(of: $0) == $0 })
        #expect(ChunkSeal.paddedLength(of: 129) == 144 && ChunkSeal.paddedLength(of: 1_048_577) == 1_081_344)
        for power in 4..<12 {
            let lengths = Set((Int64(1) << power..<Int64(2) << power).map(ChunkSeal.paddedLength))
            #expect(lengths.count <= (1 << 4) + 1, "with the next power")
        }
        #expect((1..<5000).allSatisfy { Double(ChunkSeal.paddedLength(of: $0)) <= Double($0) * 1.1164 })
    }

    @Test(arguments: [129, 100_001, 1_048_577]) func `padding with a byte that is not zero is rejected`(_ length: Int) throws
    {
        let content = content(length)
        let padded = Int(ChunkSeal.paddedLength(of: Int64(length)))
        for place in [length, padded - 1] {
            var hidden = content + Data(count: padded - length)
            hidden[place] = 1
            // Padded data is not padded again.
            let (sealed, made) = try seal(hidden)
            #expect(try made.length == Int64(padded) && open(sealed, made) == hidden)
            #expect(try open(sealed, manifest(Int64(length), made.digest)) == nil)
        }
        let (sealed, made) = try seal(content + Data(count: padded - length))
        #expect(try open(sealed, manifest(Int64(length), made.digest)) == content)
    }

    @Test func `a file with changed, reordered, missing, repeated, truncated, additional or foreign chunks does not open`()
        throws
    {
        let content = content(3 * Self.chunk + 100)
        let (sealed, manifest) = try seal(content)
        let size = ChunkSeal.sealedChunkBytes
        let chunks = stride(from: 0, to: sealed.count, by: size).map { Data(sealed[$0..<min($0 + size, sealed.count)]) }
        let (other, _) = try seal(self.content(3 * Self.chunk + 101))
        func joined(_ numbers: Int...) -> Data { numbers.reduce(into: Data()) { $0 += chunks[$1] } }
        var damaged: [Data] = [
            joined(1, 0, 2, 3), joined(0, 2, 3), joined(0, 0, 1, 2, 3), joined(0, 1, 2), joined(0, 1, 2, 3, 3),
            joined(0, 1, 3, 3), Data(sealed.dropLast()), sealed + Data([0]), Data(), other,
        ]
        for place in [0, 1, size - 17, size - 1, size, 3 * size - 1, sealed.count - 17, sealed.count - 1] {
            var flipped = sealed
            flipped[place] ^= 1
            damaged.append(flipped)
        }
        for (index, bytes) in damaged.enumerated() {
            #expect(try open(bytes, manifest) == nil, "\(index)")
            // Nor if the manifest does not match the received data: its length, its digest.
            let length = Int64(max(0, bytes.count - 16 * ((bytes.count + size - 1) / size)))
            guard index != damaged.count, bytes != other else { continue }
            #expect(try open(bytes, self.manifest(length, Data(SHA256.hash(data: bytes)))) == nil, "\(index)")
        }
        #expect(try open(sealed, manifest) == content)
    }

    @Test func `a file does not open if the manifest has another digest or length`() throws {
        let (sealed, right) = try seal(content(100))
        #expect(try open(sealed, manifest(100, Data(repeating: 1, count: 32))) == nil)
        #expect(try open(sealed, manifest(99, right.digest)) == nil)
        #expect(try open(sealed, manifest(105, right.digest)) == nil)
    }

    @Test func `a download continues behind the last complete chunk, and has the same result`() throws {
        let content = content(5 * Self.chunk + 10)
        let (sealed, manifest) = try seal(content)
        for there in [0, 1, Self.chunk - 1, Self.chunk, 3 * Self.chunk + 5, 5 * Self.chunk, content.count] {
            let name = path(UUID().uuidString)
            try content.prefix(there).write(to: URL(fileURLWithPath: name))
            let file = try OpeningFile(manifest, into: DiskFile(name, .going))
            let chunks = Int64(min(there / Self.chunk, 5))
            #expect(file.offset == chunks * Int64(ChunkSeal.sealedChunkBytes))
            try file.take(Data(sealed.dropFirst(Int(file.offset)).prefix(70_000)))
            file.interrupted()
            try file.take(Data(sealed.dropFirst(Int(file.offset))))
            try file.finish()
            #expect(try Data(contentsOf: URL(fileURLWithPath: name)) == content)
        }
        // The existing data is longer than the file: it is cut.
        let long = path(UUID().uuidString)
        try (content + Data(count: 100)).write(to: URL(fileURLWithPath: long))
        let cut = try OpeningFile(manifest, into: DiskFile(long, .going))
        try cut.take(Data(sealed.dropFirst(Int(cut.offset))))
        try cut.finish()
        #expect(try Data(contentsOf: URL(fileURLWithPath: long)) == content)
        // The existing data belongs to another file: this is found at the end.
        let name = path(UUID().uuidString)
        try Data(count: 2 * Self.chunk).write(to: URL(fileURLWithPath: name))
        let file = try OpeningFile(manifest, into: DiskFile(name, .going))
        try file.take(Data(sealed.dropFirst(Int(file.offset))))
        #expect(throws: PushError.self) { try file.finish() }
    }

    @Test func `unverified data is not written`() throws {
        var (sealed, manifest) = try seal(content(2 * Self.chunk))
        sealed[ChunkSeal.sealedChunkBytes] ^= 1
        let name = path(UUID().uuidString)
        let file = try OpeningFile(manifest, into: DiskFile(name, .going))
        #expect(throws: PushError.self) { try file.take(sealed) }
        #expect(try Data(contentsOf: URL(fileURLWithPath: name)).count <= Self.chunk)
    }

    @Test func `keys are new each time, and invalid manifests are detected`() throws {
        #expect(ChunkSeal.makeKey() != ChunkSeal.makeKey() && ChunkSeal.makeKey().count == 32)
        let right = manifest(1, Data(count: 32))
        #expect(right.isPossible)
        for (id, keyBytes, length, digest) in [
            ("../../etc/passwd", 32, Int64(1), 32), (String(repeating: "A", count: 36), 32, 1, 32),
            (right.id, 31, 1, 32), (right.id, 32, -1, 32), (right.id, 32, .max, 32), (right.id, 32, 1, 31),
        ] {
            let wrong = AttachmentManifest(
                id: id, key: Data(count: keyBytes), length: length, digest: Data(count: digest), expiresAt: .now)
            #expect(!wrong.isPossible)
        }
        let coded = try JSONDecoder().decode(AttachmentManifest.self, from: JSONEncoder().encode(right))
        #expect(coded == right)
    }

    @Test(arguments: [("/a/b", "/a"), ("/a", "/"), ("a", "."), ("a/b", "a"), ("/a/\u{301}b", "/a"), ("/a/\u{200D}", "/a")])
    func `the directory of a path ends before its last slash`(_ path: String, _ directory: String) {
        #expect(DiskFile.directory(of: path) == directory)
    }

    @Test func `a missing file and a directory are not read, and an existing name is not overwritten`() throws {
        #expect(throws: PushError.self) { try DiskFile(path("missing"), .reading) }
        #expect(throws: PushError.self) { try DiskFile(directory.path, .reading) }
        try Data("a".utf8).write(to: URL(fileURLWithPath: path("a")))
        try Data("b".utf8).write(to: URL(fileURLWithPath: path("b")))
        let fault = #expect(throws: PushError.self) { try DiskFile.publish(path("a"), as: path("b")) }
        #expect(fault?.code == .fileExists)
        try FileManager.default.createSymbolicLink(atPath: path("link"), withDestinationPath: path("nowhere"))
        #expect(throws: PushError.self) { try DiskFile.publish(path("a"), as: path("link")) }
        #expect(throws: PushError.self) { try DiskFile(path("link"), .going) }
        #expect(try Data(contentsOf: URL(fileURLWithPath: path("b"))) == Data("b".utf8))
    }
}
