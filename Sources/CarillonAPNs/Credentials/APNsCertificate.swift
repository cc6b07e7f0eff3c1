import CarillonBasics
import NIOSSL

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// A client certificate with its private key, for connections without provider tokens.
public struct APNsCertificate: Sendable {
    let chain: [NIOSSLCertificate]
    let key: NIOSSLPrivateKey
    /// The time from which the certificate is valid.
    public let validFrom: Date
    /// The time at which the certificate expires. APNs then refuses connections with this certificate.
    public let expiresAt: Date

    /// Reads a `.p12` file, as Keychain Access exports it.
    public init(p12Path: String, passphrase: String? = nil) throws(APNsError) {
        try self.init(p12: FileBytes.read(p12Path, of: "certificate"), passphrase: passphrase)
    }

    /// Decodes the bytes of a `.p12` file.
    public init(p12: [UInt8], passphrase: String? = nil) throws(APNsError) {
        let material = KeyMaterial(bytes: p12)
        guard !material.isCertificateFile else {
            throw APNsError(
                .credentialsInvalid,
                "The .p12 is a certificate without a private key; export the certificate and its key together from Keychain Access."
            )
        }
        guard material.text == nil || material.items.isEmpty else {
            throw APNsError(
                .credentialsInvalid,
                "The .p12 is text in PEM form; it must be a PKCS #12 file. Load PEM as a certificate in PEM form, with its private key."
            )
        }
        // NIOSSL ends the process for a readable file that lacks the certificate or the key, such as an export of the
        // certificate alone.
        guard PKCS12Bags.mayHoldKey(p12), PKCS12Bags.mayHoldCertificate(p12) else {
            throw APNsError(
                .credentialsInvalid,
                "The .p12 is damaged, or does not contain a certificate and its private key; export both together from Keychain Access."
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

    /// Decodes PEM text: the certificate, followed by the certificates that link it to its authority, and the private key.
    ///
    /// `pem` and `privateKeyPEM` can be the same text. If the text has several private keys, the first one that belongs to
    /// the certificate is used. White space, the length of lines, text outside of the blocks and a byte-order mark do not
    /// matter, and line breaks can be written as `\n`.
    public init(pem: String, privateKeyPEM: String, passphrase: String? = nil) throws(APNsError) {
        let chain = try Self.certificates(in: pem)
        guard let own = chain.first else { throw Self.withoutCertificate }
        let key = try Self.key(in: KeyMaterial(privateKeyPEM), passphrase: passphrase, of: own).key
        try self.init(chain: chain, key: key)
    }

    /// Returns the first private key that belongs to the first certificate, without the other contents of the text.
    package static func privateKey(
        in privateKeyPEM: String, passphrase: String?, of pem: String
    ) throws(APNsError) -> String {
        guard let own = try certificates(in: pem).first else { throw withoutCertificate }
        return try key(in: KeyMaterial(privateKeyPEM), passphrase: passphrase, of: own).item.text
    }

    private static func certificates(in pem: String) throws(APNsError) -> [NIOSSLCertificate] {
        do {
            return try KeyMaterial(pem).tlsCertificates()
        } catch {
            throw APNsError(
                .credentialsInvalid, error.sentence("The certificate", need: "a certificate in PEM form"))
        }
    }

    private static let keySubject = "The certificate's private key"
    private static let keyNeed = "a private key in PEM form"
    private static let withoutCertificate = APNsError(.credentialsInvalid, "There is no certificate.")

    /// Returns the first private key that belongs to the certificate. If no decoded key belongs to it, a key that cannot
    /// be decoded can be the right one, so that the error is about this key.
    private static func key(
        in material: KeyMaterial, passphrase: String?, of certificate: NIOSSLCertificate
    ) throws(APNsError) -> (item: KeyMaterial.Item, key: NIOSSLPrivateKey) {
        let items: [KeyMaterial.Item]
        do {
            items = try material.privateKeys()
        } catch {
            throw APNsError(.credentialsInvalid, error.sentence(keySubject, need: keyNeed))
        }
        var undecoded: APNsError?
        var mismatch: APNsError?
        for item in items {
            let candidate: NIOSSLPrivateKey
            do {
                candidate = try Self.key(from: item, passphrase: passphrase)
            } catch {
                undecoded = undecoded ?? error
                continue
            }
            do {
                try checkPair(certificate, candidate)
                return (item, candidate)
            } catch {
                mismatch = mismatch ?? error
            }
        }
        if let undecoded { throw undecoded }
        guard items.count == 1, let mismatch else {
            throw APNsError(
                .credentialsInvalid,
                "None of the \(items.count) different keys belongs to the certificate; one of them must be the private key of the certificate.",
                cause: mismatch)
        }
        throw mismatch
    }

    private static func key(
        from item: KeyMaterial.Item, passphrase: String?
    ) throws(APNsError) -> NIOSSLPrivateKey {
        let (subject, need) = (keySubject, keyNeed)
        let isEncrypted = item.content == .encryptedKey
        guard !isEncrypted || passphrase?.isEmpty == false else {
            throw APNsError(.credentialsInvalid, "\(subject) is encrypted; it needs its passphrase.")
        }
        // NIOSSL ends the process for a passphrase that is not ASCII.
        guard passphrase?.utf8.allSatisfy({ $0 < 0x80 }) ?? true else {
            throw APNsError(
                .credentialsInvalid,
                "The passphrase of a PEM key must be ASCII; decrypt the key with openssl pkey, or use a .p12.")
        }
        do {
            // A passphrase is always passed, because NIOSSL otherwise prompts for one on the terminal.
            let passphrase = Array((passphrase ?? "").utf8)
            return try NIOSSLPrivateKey(bytes: Array(item.text.utf8), format: .pem) { $0(passphrase) }
        } catch {
            let fault = KeyFault.undecodable(label: item.block.label).sentence(subject, need: need)
            throw APNsError(
                .credentialsInvalid,
                isEncrypted ? "\(subject) cannot be decrypted: the passphrase is wrong, or the key is damaged." : fault,
                cause: error)
        }
    }

    private init(chain: [NIOSSLCertificate], key: NIOSSLPrivateKey) throws(APNsError) {
        guard let own = chain.first else { throw Self.withoutCertificate }
        try Self.checkPair(own, key)
        self.chain = chain
        self.key = key
        validFrom = Date(timeIntervalSince1970: TimeInterval(own.notValidBefore))
        expiresAt = Date(timeIntervalSince1970: TimeInterval(own.notValidAfter))
    }

    /// Checks that the key belongs to the certificate. BoringSSL compares them when a context is made of both.
    private static func checkPair(_ certificate: NIOSSLCertificate, _ key: NIOSSLPrivateKey) throws(APNsError) {
        var tls = TLSConfiguration.makeClientConfiguration()
        // The system's authorities are not needed, and take time to load.
        tls.trustRoots = .certificates([])
        tls.certificateChain = [.certificate(certificate)]
        tls.privateKey = .privateKey(key)
        do {
            _ = try NIOSSLContext(configuration: tls)
        } catch {
            throw APNsError(
                .credentialsInvalid,
                "The private key does not belong to the certificate; use the private key of the certificate.",
                cause: error)
        }
    }

    func checkValidity(at second: Int64) throws(APNsError) {
        guard WholeSeconds.of(expiresAt) > second else {
            throw APNsError(
                .credentialsInvalid,
                "The certificate expired at \(expiresAt.formatted(.iso8601)), and the time is \(Self.time(second)); create a new certificate in Apple's portal."
            )
        }
        guard WholeSeconds.of(validFrom) <= second else {
            throw APNsError(
                .credentialsInvalid,
                "The certificate is not valid before \(validFrom.formatted(.iso8601)), and the time is \(Self.time(second)); check the clock."
            )
        }
    }

    private static func time(_ second: Int64) -> String {
        Date(timeIntervalSince1970: TimeInterval(second)).formatted(.iso8601)
    }
}
