import CarillonBasics
import CarillonWire
import Crypto

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// All that a sealed request or reply is bound to: whoever changes any of it, or sends it as something else, has something that does not
/// open.
struct SealContext: Equatable, Sendable {
    enum Direction: String, Sendable {
        case request
        /// With the hash of the request that it answers.
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
    /// Empty for a request.
    var requestHash: [UInt8] = []

    /// HPKE's `info`: SHA-256 over each part with its length before it, so that no two contexts are one (RFC 9180 section 9.1.3 asks for
    /// short ones).
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

/// Seals and opens what travels from device to device: HPKE in Auth mode (RFC 9180 section 5.1.3), once for each key schedule.
enum ServiceSeal {
    static let suite = HPKE.Ciphersuite.Curve25519_SHA256_ChachaPoly
    /// The length of what is sealed says little: spaces bring it up to a multiple of this. They mean nothing to JSON.
    private static let paddedTo = 256

    struct Sealed: Equatable, Sendable {
        var encapsulated: [UInt8]
        var body: [UInt8]

        /// What a reply names of its request.
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

    /// A key of another, unless what both have in common would be nothing (RFC 9180 section 7.1.4).
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

    /// Whether the identity that it names signed it for this device.
    func isSigned(for device: String) -> Bool {
        guard Ed25519Encoding.isAcceptable(identity),
            let identity = try? Curve25519.Signing.PublicKey(rawRepresentation: identity)
        else { return false }
        return identity.isValidSignature(signature, for: signed(device: device))
    }
}

/// What people compare of an identity: the beginning of its hash, in groups of four digits.
enum Fingerprint {
    /// Returns a fingerprint that a person typed as ``text(of:)`` writes it.
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
