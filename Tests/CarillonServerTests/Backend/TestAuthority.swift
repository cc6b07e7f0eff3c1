import Crypto
import Foundation
import NIOSSL
import SwiftASN1
import X509

/// A certificate authority of a test, and the certificates that it issues, created anew for each test.
struct TestAuthority {
    private let key = P256.Signing.PrivateKey()
    private let name: DistinguishedName
    private let certificate: Certificate

    init() throws {
        name = try DistinguishedName { CommonName("Carillon tests \(UUID().uuidString)") }
        let key = Certificate.PrivateKey(key)
        certificate = try Certificate(
            version: .v3, serialNumber: .init(), publicKey: key.publicKey,
            notValidBefore: Date(timeIntervalSinceNow: -86_400), notValidAfter: Date(timeIntervalSinceNow: 86_400),
            issuer: name, subject: name, signatureAlgorithm: .ecdsaWithSHA256,
            extensions: try .init {
                Critical(BasicConstraints.isCertificateAuthority(maxPathLength: nil))
                Critical(KeyUsage(keyCertSign: true))
            },
            issuerPrivateKey: key)
    }

    /// The authority's own certificate, as an operator writes it into a file.
    func file() throws -> String {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("authority-\(UUID().uuidString).pem").path
        let base64 = Data(try Self.encoded(certificate)).base64EncodedString(options: .lineLength64Characters)
        let pem = "-----BEGIN CERTIFICATE-----\n\(base64)\n-----END CERTIFICATE-----\n"
        try Data(pem.utf8).write(to: URL(fileURLWithPath: path))
        return path
    }

    /// The certificate of a server with these names.
    func serverContext(
        names: [String] = [], addresses: [[UInt8]] = [], from start: TimeInterval = -3600, until end: TimeInterval = 3600
    ) throws -> NIOSSLContext {
        let own = P256.Signing.PrivateKey()
        let alternatives =
            names.map { GeneralName.dnsName($0) }
            + addresses.map { GeneralName.ipAddress(ASN1OctetString(contentBytes: $0[...])) }
        let certificate = try Certificate(
            version: .v3, serialNumber: .init(), publicKey: Certificate.PublicKey(own.publicKey),
            notValidBefore: Date(timeIntervalSinceNow: start), notValidAfter: Date(timeIntervalSinceNow: end),
            issuer: name, subject: try DistinguishedName { CommonName("a backend") },
            signatureAlgorithm: .ecdsaWithSHA256,
            extensions: try .init {
                BasicConstraints.notCertificateAuthority
                SubjectAlternativeNames(alternatives)
            },
            issuerPrivateKey: Certificate.PrivateKey(key))
        return try NIOSSLContext(
            configuration: .makeServerConfiguration(
                certificateChain: [
                    .certificate(try NIOSSLCertificate(bytes: Self.encoded(certificate), format: .der))
                ],
                privateKey: .privateKey(try NIOSSLPrivateKey(bytes: Array(own.derRepresentation), format: .der))))
    }

    private static func encoded(_ certificate: Certificate) throws -> [UInt8] {
        var serializer = DER.Serializer()
        try serializer.serialize(certificate)
        return serializer.serializedBytes
    }
}
