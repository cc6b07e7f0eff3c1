import Crypto
import Foundation
import NIOSSL
import SwiftASN1
import X509

/// A certificate authority of a test, and the certificates that it issues.
struct TestCertificates {
    private let key = P256.Signing.PrivateKey()
    private let name: DistinguishedName
    let authorityPEM: String

    init() throws {
        let name = try DistinguishedName { CommonName("Carillon APNs tests \(UUID().uuidString)") }
        let key = Certificate.PrivateKey(key)
        let certificate = try Certificate(
            version: .v3, serialNumber: .init(), publicKey: key.publicKey,
            notValidBefore: Date(timeIntervalSinceNow: -86_400), notValidAfter: Date(timeIntervalSinceNow: 86_400),
            issuer: name, subject: name, signatureAlgorithm: .ecdsaWithSHA256,
            extensions: try .init {
                Critical(BasicConstraints.isCertificateAuthority(maxPathLength: nil))
                Critical(KeyUsage(keyCertSign: true))
            },
            issuerPrivateKey: key)
        self.name = name
        authorityPEM = try certificate.serializeAsPEM().pemString
    }

    /// A certificate and its key, as PEM.
    func issue(
        names: [String] = ["localhost"], from start: TimeInterval = -3600, until end: TimeInterval = 3600
    ) throws -> (certificate: String, key: String) {
        let own = P256.Signing.PrivateKey()
        let certificate = try Certificate(
            version: .v3, serialNumber: .init(), publicKey: Certificate.PublicKey(own.publicKey),
            notValidBefore: Date(timeIntervalSinceNow: start), notValidAfter: Date(timeIntervalSinceNow: end),
            issuer: name, subject: try DistinguishedName { CommonName("a peer of the tests") },
            signatureAlgorithm: .ecdsaWithSHA256,
            extensions: try .init {
                BasicConstraints.notCertificateAuthority
                SubjectAlternativeNames(names.map { GeneralName.dnsName($0) })
            },
            issuerPrivateKey: Certificate.PrivateKey(key))
        return (try certificate.serializeAsPEM().pemString, own.pemRepresentation)
    }

    func serverContext(
        names: [String] = ["localhost"], protocols: [String] = ["h2"], demandsClient: Bool = false,
        newestTLS: TLSVersion? = nil
    ) throws -> NIOSSLContext {
        let (certificate, key) = try issue(names: names)
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: try NIOSSLCertificate.fromPEMBytes(Array(certificate.utf8)).map { .certificate($0) },
            privateKey: .privateKey(try NIOSSLPrivateKey(bytes: Array(key.utf8), format: .pem)))
        configuration.applicationProtocols = protocols
        if let newestTLS {
            configuration.minimumTLSVersion = .tlsv1
            configuration.maximumTLSVersion = newestTLS
        }
        if demandsClient {
            configuration.certificateVerification = .noHostnameVerification
            configuration.trustRoots = .certificates(try NIOSSLCertificate.fromPEMBytes(Array(authorityPEM.utf8)))
        }
        return try NIOSSLContext(configuration: configuration)
    }
}
