import NIOSSL

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// A client certificate with its key, for connections without provider tokens.
public struct APNsCertificate: Sendable {
    let chain: [NIOSSLCertificate]
    let key: NIOSSLPrivateKey
    /// From when the certificate is valid.
    public let validFrom: Date
    /// Until when the certificate is valid. The service refuses connections with it from then on.
    public let expiresAt: Date

    /// Reads a `.p12` file, as Keychain Access exports it.
    public init(p12Path: String, passphrase: String? = nil) throws(APNsError) {
        try self.init(p12: FileBytes.read(p12Path, of: "certificate"), passphrase: passphrase)
    }

    /// Takes the bytes of a `.p12` file.
    public init(p12: [UInt8], passphrase: String? = nil) throws(APNsError) {
        // NIOSSL ends the process over a file that opens and lacks one of the two, as an export of the certificate alone.
        guard PKCS12Bags.mayHoldKey(p12), PKCS12Bags.mayHoldCertificate(p12) else {
            throw APNsError(
                .credentialsInvalid,
                "The .p12 is damaged, or does not hold a certificate and its private key; export both together from Keychain Access."
            )
        }
        let bundle: NIOSSLPKCS12Bundle
        do {
            bundle = try NIOSSLPKCS12Bundle(buffer: p12, passphrase: passphrase.map { Array($0.utf8) })
        } catch {
            throw APNsError(
                .credentialsInvalid,
                passphrase == nil
                    ? "The .p12 cannot be opened without a passphrase, or it is damaged."
                    : "The .p12 cannot be opened: the passphrase is wrong, or it is damaged.",
                cause: error)
        }
        try self.init(chain: bundle.certificateChain, key: bundle.privateKey)
    }

    /// Takes PEM text: the certificate, with those that link it to its authority after it, and the private key.
    public init(pem: String, privateKeyPEM: String, passphrase: String? = nil) throws(APNsError) {
        let chain: [NIOSSLCertificate]
        let key: NIOSSLPrivateKey
        do {
            chain = try NIOSSLCertificate.fromPEMBytes(Array(pem.utf8))
        } catch {
            throw APNsError(.credentialsInvalid, "The certificate is not in PEM form.", cause: error)
        }
        // NIOSSL ends the process over others.
        guard passphrase?.utf8.allSatisfy({ $0 < 0x80 }) ?? true else {
            throw APNsError(
                .credentialsInvalid,
                "The passphrase of a PEM key must be ASCII; decrypt the key with openssl pkey, or give a .p12.")
        }
        do {
            if let passphrase {
                key = try NIOSSLPrivateKey(bytes: Array(privateKeyPEM.utf8), format: .pem) { $0(passphrase.utf8) }
            } else {
                // An empty passphrase, so that an encrypted key is refused instead of asked for on a terminal.
                key = try NIOSSLPrivateKey(bytes: Array(privateKeyPEM.utf8), format: .pem) { $0([UInt8]()) }
            }
        } catch {
            throw APNsError(
                .credentialsInvalid, "The certificate's private key is not in PEM form, or its passphrase is wrong.",
                cause: error)
        }
        try self.init(chain: chain, key: key)
    }

    private init(chain: [NIOSSLCertificate], key: NIOSSLPrivateKey) throws(APNsError) {
        guard let own = chain.first else { throw APNsError(.credentialsInvalid, "There is no certificate.") }
        self.chain = chain
        self.key = key
        validFrom = Date(timeIntervalSince1970: TimeInterval(own.notValidBefore))
        expiresAt = Date(timeIntervalSince1970: TimeInterval(own.notValidAfter))
    }

    func checkValidity(at second: Int64) throws(APNsError) {
        guard WholeSeconds.of(expiresAt) > second else {
            throw APNsError(
                .credentialsInvalid,
                "The certificate expired at \(expiresAt.formatted(.iso8601)); make a new one in Apple's portal.")
        }
        guard WholeSeconds.of(validFrom) <= second else {
            throw APNsError(
                .credentialsInvalid,
                "The certificate is not valid before \(validFrom.formatted(.iso8601)); is the clock right?")
        }
    }
}
