import Crypto

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A sealed copy of a file. It is made before the upload begins, so that a repeated upload sends the same bytes, also if the file
/// has changed meanwhile.
enum SealedFile {
    struct Made: Sendable {
        var length: Int64
        var digest: Data
    }

    private static let chunksAtOnce = 16

    /// Seals the content of a file, from the current position to its end, and the zeros of its padding.
    ///
    /// - Parameter sealed: A new file. It is complete and on disk when this returns.
    static func make(of source: DiskFile, at sealed: DiskFile, key: Data) throws(PushError) -> Made {
        let seal = ChunkSeal(key: key)
        var hash = SHA256()
        var (written, number): (Int64, Int64) = (0, 0)
        let most = ChunkSeal.chunkBytes * chunksAtOnce
        var padded = PaddedFile(file: source)
        var part = try padded.next(most)
        while true {
            // A chunk is the last one if no bytes follow.
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

    /// A file, and the zeros of its padding.
    private struct PaddedFile {
        let file: DiskFile
        /// The number of bytes of the file that were read.
        private(set) var length: Int64 = 0
        /// The number of zeros that are not read yet; nil before the end of the file.
        private var zeros: Int64?

        init(file: DiskFile) { self.file = file }

        /// Returns fewer bytes than `count` only at the end of the padding.
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

/// Opens a sealed file chunk by chunk as its bytes arrive, and writes the chunks to a file. Only verified chunks are written.
///
/// One task uses it.
final class OpeningFile: @unchecked Sendable {
    private let manifest: AttachmentManifest
    private let file: DiskFile
    private let seal: ChunkSeal
    private let chunks: Int64
    private var hash = SHA256()
    private var number: Int64 = 0
    private var pending = Data()

    /// Continues with the chunks that the file contains, except the last one.
    init(_ manifest: AttachmentManifest, into file: DiskFile) throws(PushError) {
        self.manifest = manifest
        self.file = file
        seal = ChunkSeal(key: manifest.key)
        chunks = ChunkSeal.chunks(of: manifest.length)
        let whole = min(try file.size() / Int64(ChunkSeal.chunkBytes), chunks - 1)
        // They are sealed again for the digest: the same chunk with the same nonce results in the same bytes.
        while number < whole {
            let chunk = try file.read(at: number * Int64(ChunkSeal.chunkBytes), count: ChunkSeal.chunkBytes)
            guard let box = try? seal.seal(chunk, number: number, isLast: false) else { throw Self.damaged }
            hash.update(data: box)
            number += 1
        }
        try file.cut(to: whole * Int64(ChunkSeal.chunkBytes))
    }

    /// The position in the sealed file from which the download continues.
    var offset: Int64 { number * Int64(ChunkSeal.sealedChunkBytes) }

    /// The number of bytes of the sealed file that were received.
    var received: Int64 { offset + Int64(pending.count) }

    /// Removes the part of an incomplete chunk, which is received again.
    func interrupted() { pending = Data() }

    /// - Throws: ``PushError/Code/attachmentDamaged`` if the bytes are not chunks of the sealed file.
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

    /// Checks that only zeros follow the end of the file, so that no hidden data is accepted.
    private func checkPadding(of chunk: Data) throws(PushError) {
        let start = number * Int64(ChunkSeal.chunkBytes)
        let ofFile = min(max(0, manifest.length - start), Int64(chunk.count))
        guard chunk.dropFirst(Int(ofFile)).allSatisfy({ $0 == 0 }) else { throw Self.damaged }
    }

    var isWhole: Bool { number == chunks }

    /// Checks that the file is complete, removes the padding, and brings the file to disk.
    /// - Throws: ``PushError/Code/attachmentDamaged`` if the file is not the manifest's.
    func finish() throws(PushError) {
        let padded = ChunkSeal.paddedLength(of: manifest.length)
        guard isWhole, Data(hash.finalize()) == manifest.digest, try file.size() == padded else { throw Self.damaged }
        try file.cut(to: manifest.length)
        try file.sync()
    }

    static let damaged = PushError(
        .attachmentDamaged, "The attachment is not what was sealed: it was changed, cut, or is another.")
}
