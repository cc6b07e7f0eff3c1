import Crypto

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A sealed copy of a file, made before anything is sent: what is sent again later is the same, whatever becomes of the file meanwhile.
enum SealedFile {
    struct Made: Sendable {
        var length: Int64
        var digest: Data
    }

    private static let chunksAtOnce = 16

    /// Seals what is read, to its end, and the zeros behind it.
    ///
    /// - Parameter sealed: A new file, whole and on disk when this returns.
    static func make(of source: DiskFile, at sealed: DiskFile, key: Data) throws(PushError) -> Made {
        let seal = ChunkSeal(key: key)
        var hash = SHA256()
        var (written, number): (Int64, Int64) = (0, 0)
        let most = ChunkSeal.chunkBytes * chunksAtOnce
        var padded = PaddedFile(file: source)
        var part = try padded.next(most)
        while true {
            // Which chunk is the last is known when nothing follows.
            let next = try padded.next(most)
            var rest = part[...]
            repeat {
                let chunk = rest.prefix(ChunkSeal.chunkBytes)
                rest = rest.dropFirst(ChunkSeal.chunkBytes)
                let box: Data
                do {
                    box = try seal.seal(chunk, number: number, isLast: rest.isEmpty && next.isEmpty)
                } catch {
                    throw PushError(.fileInvalid, "The file cannot be sealed.", cause: error)
                }
                hash.update(data: box)
                try sealed.write(box, at: written)
                written += Int64(box.count)
                number += 1
            } while !rest.isEmpty
            if next.isEmpty { break }
            part = next
        }
        try sealed.sync()
        return Made(length: padded.length, digest: Data(hash.finalize()))
    }

    /// A file, and the zeros that it is padded with.
    private struct PaddedFile {
        let file: DiskFile
        /// Of the file, as far as it was read.
        private(set) var length: Int64 = 0
        /// Known when the file is at its end.
        private var zeros: Int64?

        init(file: DiskFile) { self.file = file }

        /// Fewer bytes than were asked for are the last.
        mutating func next(_ count: Int) throws(PushError) -> Data {
            var part = Data()
            if zeros == nil {
                part = try file.read(at: length, count: count)
                length += Int64(part.count)
                if part.count == count { return part }
            }
            let left = zeros ?? ChunkSeal.paddedLength(of: length) - length
            let taken = min(left, Int64(count - part.count))
            zeros = left - taken
            part.append(Data(count: Int(taken)))
            return part
        }
    }
}

/// A sealed file that is opened as it comes, chunk by chunk, into a file that grows. Nothing is written that did not prove right.
///
/// It is used by one task.
final class OpeningFile: @unchecked Sendable {
    private let manifest: AttachmentManifest
    private let file: DiskFile
    private let seal: ChunkSeal
    private let chunks: Int64
    private var hash = SHA256()
    private var number: Int64 = 0
    private var pending = Data()

    /// Goes on with what is in the file: its chunks, but for the last.
    init(_ manifest: AttachmentManifest, into file: DiskFile) throws(PushError) {
        self.manifest = manifest
        self.file = file
        seal = ChunkSeal(key: manifest.key)
        chunks = ChunkSeal.chunks(of: manifest.length)
        let whole = min(try file.size() / Int64(ChunkSeal.chunkBytes), chunks - 1)
        // The same chunk under the same nonce is sealed to the same bytes.
        while number < whole {
            let chunk = try file.read(at: number * Int64(ChunkSeal.chunkBytes), count: ChunkSeal.chunkBytes)
            guard let box = try? seal.seal(chunk, number: number, isLast: false) else { throw Self.damaged }
            hash.update(data: box)
            number += 1
        }
        try file.cut(to: whole * Int64(ChunkSeal.chunkBytes))
    }

    /// Where in the sealed file it goes on.
    var offset: Int64 { number * Int64(ChunkSeal.sealedChunkBytes) }

    /// How much of the sealed file is there.
    var received: Int64 { offset + Int64(pending.count) }

    /// What was cut off begins at a chunk again.
    func interrupted() { pending = Data() }

    /// - Throws: ``PushError/Code/attachmentDamaged`` for bytes that were not sealed so.
    func take(_ bytes: Data) throws(PushError) {
        pending.append(bytes)
        var rest = pending[...]
        var opened = Data()
        let start = number
        while number < chunks {
            let isLast = number == chunks - 1
            let count = isLast ? Int(manifest.sealedLength - offset) : ChunkSeal.sealedChunkBytes
            guard rest.count >= count else { break }
            let sealed = Data(rest.prefix(count))
            guard let chunk = seal.open(sealed, number: number, isLast: isLast) else { throw Self.damaged }
            try checkPadding(of: chunk)
            hash.update(data: sealed)
            opened.append(chunk)
            rest = rest.dropFirst(count)
            number += 1
        }
        if !opened.isEmpty { try file.write(opened, at: start * Int64(ChunkSeal.chunkBytes)) }
        guard number < chunks || rest.isEmpty else { throw Self.damaged }
        if number > start { pending = Data(rest) }
    }

    /// What is behind the file's end is zeros, and nothing that somebody hid there.
    private func checkPadding(of chunk: Data) throws(PushError) {
        let start = number * Int64(ChunkSeal.chunkBytes)
        let ofFile = min(max(0, manifest.length - start), Int64(chunk.count))
        guard chunk.dropFirst(Int(ofFile)).allSatisfy({ $0 == 0 }) else { throw Self.damaged }
    }

    var isWhole: Bool { number == chunks }

    /// All of it is there, without its padding, and on disk.
    ///
    /// - Throws: ``PushError/Code/attachmentDamaged`` where it is another file than the manifest's.
    func finish() throws(PushError) {
        let padded = ChunkSeal.paddedLength(of: manifest.length)
        guard isWhole, Data(hash.finalize()) == manifest.digest, try file.size() == padded else { throw Self.damaged }
        try file.cut(to: manifest.length)
        try file.sync()
    }

    static let damaged = PushError(
        .attachmentDamaged, "The attachment is not what was sealed: it was changed, cut, or is another.")
}
