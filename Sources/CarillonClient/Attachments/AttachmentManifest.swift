#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// The data with which a reader fetches and decrypts an attachment. Every holder of a manifest can read the file: send it
/// encrypted, and only to the readers.
public struct AttachmentManifest: Codable, Hashable, Sendable {
    /// The id of the attachment on the server.
    public let id: String
    /// The key that seals this file and no other.
    public let key: Data
    /// The length of the file, in bytes.
    public let length: Int64
    /// The SHA-256 digest of the sealed file.
    public let digest: Data
    /// When the server removes the attachment, unless all readers have fetched it before.
    public let expiresAt: Date

    /// The length of the sealed file, in bytes.
    var sealedLength: Int64 { ChunkSeal.sealedLength(of: length) }

    /// Whether all values are valid.
    var isPossible: Bool {
        id.utf8.count == 36 && id.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
            && key.count == ChunkSeal.keyBytes && digest.count == 32 && (0...1 << 50).contains(length)
    }
}

/// A reader of an attachment.
public enum AttachmentReader: Hashable, Sendable {
    /// A device, by its ``PushDevice/deviceID`` on the same server.
    case device(String)
    /// All owners of a sender key of the app.
    case senders

    var name: String {
        switch self {
        case .device(let id): id
        case .senders: "senders"
        }
    }
}
