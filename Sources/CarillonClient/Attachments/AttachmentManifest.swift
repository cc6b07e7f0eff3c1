#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// All that is needed to fetch an attachment and to read it. Whoever has it can read the file: send it sealed, and to those only who are to
/// read it.
public struct AttachmentManifest: Codable, Hashable, Sendable {
    /// The server's name for it.
    public let id: String
    /// The key that the file is sealed with, and no other.
    public let key: Data
    /// Of the file, in bytes.
    public let length: Int64
    /// SHA-256 of the sealed file.
    public let digest: Data
    /// When the server removes it, unless everybody has fetched it before.
    public let expiresAt: Date

    /// Of the sealed file, in bytes.
    var sealedLength: Int64 { ChunkSeal.sealedLength(of: length) }

    /// Whether it can be one at all.
    var isPossible: Bool {
        id.utf8.count == 36 && id.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
            && key.count == ChunkSeal.keyBytes && digest.count == 32 && (0...1 << 50).contains(length)
    }
}

/// Who may fetch an attachment.
public enum AttachmentReader: Hashable, Sendable {
    /// A device, by its ``PushDevice/deviceID`` on the same server.
    case device(String)
    /// Whoever has a sender key of the app.
    case senders

    var name: String {
        switch self {
        case .device(let id): id
        case .senders: "senders"
        }
    }
}
