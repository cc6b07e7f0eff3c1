import Crypto

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The encryption of a file: in chunks, each with AES-256-GCM, with the nonces of STREAM (Hoang, Reyhanitabar, Rogaway and Vizár,
/// 2015).
///
/// A nonce is the chunk's number in 11 bytes, big endian, and a byte that is 1 for the last chunk and 0 for others. For this
/// reason a chunk that is moved, left out, repeated or cut off cannot be opened. No key seals two files. A file without bytes is
/// one empty last chunk.
struct ChunkSeal {
    /// The length of a chunk before it is sealed, in bytes. The last chunk can be shorter.
    static let chunkBytes = 65_536
    static let tagBytes = 16
    private static let nonceBytes = 12
    static let sealedChunkBytes = chunkBytes + tagBytes
    static let keyBytes = 32

    private let key: SymmetricKey

    /// - Parameter key: 32 bytes that seal no other file.
    init(key: Data) { self.key = SymmetricKey(data: key) }

    /// Makes a new key.
    static func makeKey() -> Data { SymmetricKey(size: .bits256).withUnsafeBytes { Data($0) } }

    /// Returns the length of a file with its padding of zeros. The padding hides the exact size: there are a few lengths for each
    /// power of two, and a file grows by up to 11.6 % (Padmé; Nikitin et al., 2019).
    static func paddedLength(of length: Int64) -> Int64 {
        guard length > 1 else { return length }
        let exponent = Int64.bitWidth - 1 - length.leadingZeroBitCount
        let kept = Int.bitWidth - exponent.leadingZeroBitCount
        let step: Int64 = 1 << max(0, exponent - kept)
        return (length + step - 1) & ~(step - 1)
    }

    /// Returns the number of chunks of a file, with its padding.
    static func chunks(of length: Int64) -> Int64 {
        max(1, (paddedLength(of: length) + Int64(chunkBytes) - 1) / Int64(chunkBytes))
    }

    /// Returns the length of a file after it is padded and sealed.
    static func sealedLength(of length: Int64) -> Int64 { paddedLength(of: length) + chunks(of: length) * Int64(tagBytes) }

    /// Returns the sealed chunk, followed by its tag.
    func seal(_ chunk: Data, number: Int64, isLast: Bool) throws -> Data {
        let box = try AES.GCM.seal(chunk, using: key, nonce: nonce(number, isLast))
        // The reader computes the nonce. Therefore the nonce in front of the combined form is left out, without a copy.
        return box.combined?.dropFirst(Self.nonceBytes) ?? box.ciphertext + box.tag
    }

    /// Returns the opened chunk; nil if the bytes are not this chunk of this file.
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
