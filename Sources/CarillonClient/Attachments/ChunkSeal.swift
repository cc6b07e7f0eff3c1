import Crypto

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// How a file is sealed: in chunks, each by AES-256-GCM, with the nonces of STREAM (Hoang, Reyhanitabar, Rogaway and Vizár, 2015).
///
/// A nonce is the chunk's number in 11 bytes, big endian, and a byte that is 1 for the last chunk alone: a chunk that is moved, left out, said
/// twice or cut off does not open. No key seals two files. A file without bytes is one empty last chunk.
struct ChunkSeal {
    /// Of what is sealed; the last chunk may have fewer.
    static let chunkBytes = 65_536
    static let tagBytes = 16
    private static let nonceBytes = 12
    static let sealedChunkBytes = chunkBytes + tagBytes
    static let keyBytes = 32

    private let key: SymmetricKey

    /// - Parameter key: 32 bytes that seal nothing else.
    init(key: Data) { self.key = SymmetricKey(data: key) }

    /// A new key.
    static func makeKey() -> Data { SymmetricKey(size: .bits256).withUnsafeBytes { Data($0) } }

    /// The length that a file is brought to by zeros behind it, so that its size says little of it: one of a few for each power of two, and at
    /// most 11.6 % more (Padmé; Nikitin et al., 2019).
    static func paddedLength(of length: Int64) -> Int64 {
        guard length > 1 else { return length }
        let exponent = Int64.bitWidth - 1 - length.leadingZeroBitCount
        let kept = Int.bitWidth - exponent.leadingZeroBitCount
        let step: Int64 = 1 << max(0, exponent - kept)
        return (length + step - 1) & ~(step - 1)
    }

    /// How many chunks a file of so many bytes has, with the zeros behind it.
    static func chunks(of length: Int64) -> Int64 {
        max(1, (paddedLength(of: length) + Int64(chunkBytes) - 1) / Int64(chunkBytes))
    }

    /// How many bytes a file of so many has when it is padded and sealed.
    static func sealedLength(of length: Int64) -> Int64 { paddedLength(of: length) + chunks(of: length) * Int64(tagBytes) }

    /// The chunk, and its tag behind it.
    func seal(_ chunk: Data, number: Int64, isLast: Bool) throws -> Data {
        let box = try AES.GCM.seal(chunk, using: key, nonce: nonce(number, isLast))
        // The nonce before it is known to whoever opens it. It is not copied away.
        return box.combined?.dropFirst(Self.nonceBytes) ?? box.ciphertext + box.tag
    }

    /// What was sealed; nil where it is not this chunk of this file.
    func open(_ sealed: Data, number: Int64, isLast: Bool) -> Data? {
        guard sealed.count >= Self.tagBytes, let nonce = try? nonce(number, isLast),
            let box = try? AES.GCM.SealedBox(
                nonce: nonce, ciphertext: sealed.dropLast(Self.tagBytes), tag: sealed.suffix(Self.tagBytes))
        else { return nil }
        return try? AES.GCM.open(box, using: key)
    }

    private func nonce(_ number: Int64, _ isLast: Bool) throws -> AES.GCM.Nonce {
        try AES.GCM.Nonce(data: [0, 0, 0] + withUnsafeBytes(of: number.bigEndian) { Array($0) } + [isLast ? 1 : 0])
    }
}
