import CarillonBasics
import Crypto
import Foundation
import NIOSSL
import SwiftASN1
import X509
import _CryptoExtras

/// Signs the certificates of the simulator and of its clients.
struct CertificateAuthority: Sendable {
    private let key: Certificate.PrivateKey
    let keyPEM: String
    private let certificate: Certificate
    /// The authority's certificate, which clients must trust.
    let pem: String

    /// Makes a new authority.
    init(now: Date) throws {
        let key = P256.Signing.PrivateKey()
        keyPEM = key.pemRepresentation
        let signer = Certificate.PrivateKey(key)
        self.key = signer
        let name = try DistinguishedName { CommonName("Carillon APNs Simulator") }
        certificate = try Certificate(
            version: .v3, serialNumber: .init(), publicKey: signer.publicKey, notValidBefore: now - 86_400,
            notValidAfter: now + 3650 * 86_400, issuer: name, subject: name, signatureAlgorithm: .ecdsaWithSHA256,
            extensions: try .init {
                Critical(BasicConstraints.isCertificateAuthority(maxPathLength: 0))
                Critical(KeyUsage(keyCertSign: true))
                SubjectKeyIdentifier(hash: signer.publicKey)
            }, issuerPrivateKey: signer)
        pem = try certificate.serializeAsPEM().pemString + "\n"
    }

    private init(certificatePEM: String, keyPEM: String) throws {
        self.keyPEM = keyPEM
        let own = try P256.Signing.PrivateKey(rawRepresentation: try KeyMaterial(keyPEM).p256PrivateKey())
        key = Certificate.PrivateKey(own)
        certificate = try Certificate(derEncoded: try KeyMaterial(certificatePEM).certificates()[0])
        pem = certificatePEM
    }

    /// Reads the authority from a directory, or makes one and writes it there. Without a directory, the authority is not
    /// stored.
    static func kept(in directory: String?, now: Date) throws(SimulatorError) -> CertificateAuthority {
        guard let directory else {
            do {
                return try CertificateAuthority(now: now)
            } catch {
                throw SimulatorError(.certificateFailed, "The authority cannot be created.", cause: error)
            }
        }
        let place = URL(fileURLWithPath: directory, isDirectory: true)
        let files = (place.appendingPathComponent("authority.pem"), place.appendingPathComponent("authority-key.pem"))
        switch (KeptFile.isThere(files.0), KeptFile.isThere(files.1)) {
        case (true, true): return try read(files.0, files.1)
        case (false, false): return try make(in: place, files.0, files.1, now: now)
        case (let isCertificate, _):
            throw SimulatorError(
                .storageUnavailable,
                "\(directory) contains \(isCertificate ? "authority.pem" : "authority-key.pem") without "
                    + "\(isCertificate ? "authority-key.pem" : "authority.pem"). The simulator overwrites no file: "
                    + "remove it, or choose another directory.")
        }
    }

    private static func read(_ certificate: URL, _ key: URL) throws(SimulatorError) -> CertificateAuthority {
        let texts = (try KeptFile.read(certificate), try KeptFile.read(key))
        do {
            let authority = try CertificateAuthority(certificatePEM: texts.0, keyPEM: texts.1)
            if authority.certificate.publicKey == authority.key.publicKey { return authority }
        } catch {
            throw SimulatorError(
                .storageUnavailable,
                "The authority in \(certificate.path) and \(key.lastPathComponent) is damaged. Remove both, and make clients "
                    + "trust the new one.", cause: error)
        }
        throw SimulatorError(
            .storageUnavailable,
            "\(key.path) is not the key of \(certificate.lastPathComponent) in the same directory. Remove both, and make clients trust the new one."
        )
    }

    private static func make(
        in place: URL, _ certificate: URL, _ key: URL, now: Date
    ) throws(SimulatorError) -> CertificateAuthority {
        let authority: CertificateAuthority
        do {
            authority = try CertificateAuthority(now: now)
        } catch {
            throw SimulatorError(.certificateFailed, "The authority cannot be created.", cause: error)
        }
        try KeptFile.makeDirectory(place)
        try KeptFile.make(authority.keyPEM, at: key, isSecret: true)
        try KeptFile.make(authority.pem, at: certificate, isSecret: false)
        return authority
    }

    // MARK: Servers

    /// Returns the TLS context of a listener, with the kind of certificate that the conditions contain.
    func serverContext(_ kind: Conditions.Certificate, hosts: [String], now: Date) throws -> NIOSSLContext {
        let own = P256.Signing.PrivateKey()
        let names = kind == .wrongHost ? ["other.example"] : hosts
        let subject = try DistinguishedName { CommonName(names.first ?? "localhost") }
        let issuerKey = kind == .untrusted ? Certificate.PrivateKey(own) : key
        let begins = kind == .notYetValid ? now + 86_400 : now - (kind == .expired ? 30 : 1) * 86_400
        let certificate = try Certificate(
            version: .v3, serialNumber: .init(), publicKey: Certificate.PublicKey(own.publicKey), notValidBefore: begins,
            notValidAfter: kind == .expired ? now - 86_400 : now + 390 * 86_400,
            issuer: kind == .untrusted ? subject : certificate.subject, subject: subject,
            signatureAlgorithm: .ecdsaWithSHA256,
            extensions: try .init {
                BasicConstraints.notCertificateAuthority
                try ExtendedKeyUsage([.serverAuth])
                SubjectAlternativeNames(names.map(Self.name))
            }, issuerPrivateKey: issuerKey)
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: [.certificate(try NIOSSLCertificate(bytes: Self.encoded(certificate), format: .der))],
            privateKey: .privateKey(try NIOSSLPrivateKey(bytes: Array(own.derRepresentation), format: .der)))
        configuration.applicationProtocols = ["h2"]
        configuration.minimumTLSVersion = .tlsv12
        // Every client certificate is accepted by TLS. The response to a request reports its fault.
        configuration.certificateVerification = .optionalVerification
        return try NIOSSLContext(configuration: configuration)
    }

    private static func name(_ host: String) -> GeneralName {
        let bytes = host.split(separator: ".").compactMap { UInt8($0) }
        if bytes.count == 4 { return .ipAddress(ASN1OctetString(contentBytes: bytes[...])) }
        if host == "::1" { return .ipAddress(ASN1OctetString(contentBytes: ([UInt8](repeating: 0, count: 15) + [1])[...])) }
        return .dnsName(host)
    }

    // MARK: Clients

    /// Makes a push certificate, as Apple issues it, and its key.
    func makeClientIdentity(
        topics: [String], environments: Set<Environment>, from start: Date, until end: Date,
        keyType: APNsSimulator.KeyType = .p256
    ) throws -> APNsSimulator.ClientIdentity {
        let (own, pem) = try Self.makeKey(keyType)
        let subject = DistinguishedName([
            RelativeDistinguishedName([
                .init(type: ApplePushExtensions.userIdentifier, utf8String: topics.first ?? "")
            ]),
            RelativeDistinguishedName([
                .init(type: [2, 5, 4, 3], utf8String: "Apple Push Services: \(topics.first ?? "")")
            ]),
        ])
        var extensions = try Certificate.Extensions {
            BasicConstraints.notCertificateAuthority
            try ExtendedKeyUsage([.clientAuth])
        }
        if environments.contains(.sandbox) {
            try extensions.append(
                .init(oid: ApplePushExtensions.development, critical: false, value: ApplePushExtensions.null))
        }
        if environments.contains(.production) {
            try extensions.append(
                .init(oid: ApplePushExtensions.production, critical: false, value: ApplePushExtensions.null))
        }
        try extensions.append(
            .init(oid: ApplePushExtensions.topics, critical: false, value: try ApplePushExtensions.encoded(topics)))
        let certificate = try Certificate(
            version: .v3, serialNumber: .init(), publicKey: own, notValidBefore: start,
            notValidAfter: end, issuer: certificate.subject, subject: subject, signatureAlgorithm: .ecdsaWithSHA256,
            extensions: extensions, issuerPrivateKey: key)
        return APNsSimulator.ClientIdentity(
            certificate: try certificate.serializeAsPEM().pemString + "\n", privateKey: pem + "\n")
    }

    private static func makeKey(_ type: APNsSimulator.KeyType) throws -> (key: Certificate.PublicKey, pem: String) {
        switch type {
        case .p256:
            let key = P256.Signing.PrivateKey()
            return (Certificate.PublicKey(key.publicKey), key.pemRepresentation)
        case .rsa:
            let key = try _RSA.Signing.PrivateKey(keySize: .bits2048)
            return (Certificate.PublicKey(key.publicKey), key.pkcs8PEMRepresentation)
        }
    }

    /// Reads the certificate of a client.
    func clientCertificate(der: [UInt8]) -> ClientCertificate {
        guard let shown = try? Certificate(derEncoded: der) else { return .unreadable }
        var environments: Set<Environment> = []
        if shown.extensions[oid: ApplePushExtensions.development] != nil { environments.insert(.sandbox) }
        if shown.extensions[oid: ApplePushExtensions.production] != nil { environments.insert(.production) }
        let extended = shown.extensions[oid: ApplePushExtensions.topics]
        let topics = extended.flatMap { try? ApplePushExtensions.decodedTopics($0.value) } ?? []
        return ClientCertificate(
            topics: topics, environments: environments, validFrom: Timestamp(shown.notValidBefore),
            validUntil: Timestamp(shown.notValidAfter),
            isTrusted: certificate.publicKey.isValidSignature(shown.signature, for: shown))
    }

    private static func encoded(_ certificate: Certificate) throws -> [UInt8] {
        var serializer = DER.Serializer()
        try serializer.serialize(certificate)
        return serializer.serializedBytes
    }
}

extension APNsSimulator {
    /// The type of a client certificate's key.
    public enum KeyType: String, Hashable, Sendable, CaseIterable {
        /// An elliptic curve, P-256.
        case p256
        /// RSA with 2048 bits, as in Apple's own certificates. Older clients read only this type.
        case rsa
    }

    /// A client certificate and its key, both in PEM.
    public struct ClientIdentity: Hashable, Sendable {
        /// The certificate.
        public var certificate: String
        /// The private key of the certificate.
        public var privateKey: String
    }
}

extension Timestamp {
    init(_ date: Date) { self.init(milliseconds: Int64((date.timeIntervalSince1970 * 1000).rounded())) }
}
