import CarillonBasics
import CarillonWire
import Crypto

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The context to which a sealed request or reply is bound. If any value is changed, or the message is used in another context,
/// it cannot be opened.
struct SealContext: Equatable, Sendable {
    enum Direction: String, Sendable {
        case request
        /// A reply, which is bound to the hash of its request.
        case reply
    }

    var direction: Direction
    var id: String
    var consumer: ServicePeer
    var provider: ServicePeer
    var senderKey: String
    var receiverKey: String
    var method: ServiceMethod
    var deadlineSeconds: Int64
    var foreground: String
    var files: Int
    var fileBytes: Int64
    /// The hash of the request; empty for a request.
    var requestHash: [UInt8] = []

    /// The `info` of HPKE: SHA-256 over each part with its length before it, so that two contexts cannot be equal (RFC 9180
    /// section 9.1.3 recommends short values).
    var info: Data {
        var hash = SHA256()
        let parts =
            [
                "carillon services 1", direction.rawValue, id, consumer.app, consumer.device, provider.app, provider.device,
                senderKey, receiverKey, method.service, method.version, method.name, String(deadlineSeconds), foreground,
                String(files), String(fileBytes),
            ].map { Array($0.utf8) } + [requestHash]
        for part in parts {
            hash.update(data: UInt32(part.count).bigEndianBytes)
            hash.update(data: part)
        }
        return Data(hash.finalize())
    }
}

/// Seals and opens the messages between devices: HPKE in Auth mode (RFC 9180 section 5.1.3), with a key schedule for each
/// message.
enum ServiceSeal {
    static let suite = HPKE.Ciphersuite.Curve25519_SHA256_ChachaPoly
    /// The content is padded with spaces to a multiple of this, so that its length reveals little. JSON ignores the spaces.
    private static let paddedTo = 256

    struct Sealed: Equatable, Sendable {
        var encapsulated: [UInt8]
        var body: [UInt8]

        /// The hash by which a reply names its request.
        var hash: [UInt8] { Array(SHA256.hash(data: encapsulated + body)) }
    }

    static func seal(
        _ content: [UInt8], to receiver: [UInt8], from sender: Curve25519.KeyAgreement.PrivateKey, _ context: SealContext
    ) throws(ServiceError) -> Sealed {
        do {
            let key = try publicKey(receiver, beside: sender)
            let missing = (paddedTo - content.count % paddedTo) % paddedTo
            var hpke = try HPKE.Sender(
                recipientKey: key, ciphersuite: suite, info: context.info, authenticatedBy: sender)
            let body = try hpke.seal(content + Array(repeating: UInt8(ascii: " "), count: missing))
            return Sealed(encapsulated: Array(hpke.encapsulatedKey), body: Array(body))
        } catch {
            throw ServiceError(.sealInvalid, "The receiver's key cannot be used.")
        }
    }

    static func open(
        _ sealed: Sealed, with receiver: Curve25519.KeyAgreement.PrivateKey, from sender: [UInt8], _ context: SealContext
    ) throws(ServiceError) -> [UInt8] {
        do {
            let key = try publicKey(sender, beside: receiver)
            var hpke = try HPKE.Recipient(
                privateKey: receiver, ciphersuite: suite, info: context.info,
                encapsulatedKey: Data(sealed.encapsulated),
                authenticatedBy: key)
            return Array(try hpke.open(sealed.body))
        } catch {
            throw ServiceError(.sealInvalid, "What came does not open: it was changed, or is somebody else's.")
        }
    }
}

extension ServiceSeal {
    private struct KeyIsWeak: Error {}

    /// Returns the public key of another device. Throws if the shared secret is zero (RFC 9180 section 7.1.4).
    private static func publicKey(
        _ bytes: [UInt8], beside own: Curve25519.KeyAgreement.PrivateKey
    ) throws -> Curve25519.KeyAgreement.PublicKey {
        let key = try Curve25519.KeyAgreement.PublicKey(rawRepresentation: bytes)
        let shared = try own.sharedSecretFromKeyAgreement(with: key)
        guard shared.withUnsafeBytes({ $0.contains { $0 != 0 } }) else { throw KeyIsWeak() }
        return key
    }
}

extension KeyBundle {
    /// Signs a key with an identity.
    init(
        _ key: Curve25519.KeyAgreement.PrivateKey, named name: String, until: Int64, device: String,
        by identity: Curve25519.Signing.PrivateKey
    ) throws {
        self.init(
            identity: Array(identity.publicKey.rawRepresentation), id: name, key: Array(key.publicKey.rawRepresentation),
            until: until, signature: [])
        signature = Array(try identity.signature(for: signed(device: device)))
    }

    /// Whether the identity in the bundle signed it for this device.
    func isSigned(for device: String) -> Bool {
        guard Ed25519Encoding.isAcceptable(identity),
            let identity = try? Curve25519.Signing.PublicKey(rawRepresentation: identity)
        else { return false }
        return identity.isValidSignature(signature, for: signed(device: device))
    }
}

/// The fingerprint of an identity, which people compare: the beginning of its hash, in groups of four digits.
enum Fingerprint {
    /// Returns a fingerprint that a person typed in the form of ``text(of:)``.
    static func standard(_ typed: String) -> String {
        grouped(typed.filter { !$0.isWhitespace }.lowercased())
    }

    static func text(of identity: [UInt8]) -> String {
        let digits = SHA256.hash(data: identity).prefix(16).map { byte in
            (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }.joined()
        return grouped(digits)
    }

    private static func grouped(_ digits: String) -> String {
        stride(from: 0, to: digits.count, by: 4).map { place in
            String(digits.dropFirst(place).prefix(4))
        }.joined(separator: " ")
    }
}
