import Crypto
import Foundation
import NIOSSL
import Testing

@testable import CarillonAPNs

struct CredentialTests {
    @Test func `the token is a JSON Web Token that the public key verifies`() throws {
        let key = P256.Signing.PrivateKey()
        let token = try APNsTokenKey(pem: key.pemRepresentation, keyID: "ABCDEFGHIJ", teamID: "KLMNOPQRST")
            .sign(issuedAt: 1_700_000_000)
        let parts = token.split(separator: ".").map(String.init)
        #expect(parts.count == 3)
        #expect(String(decoding: try decode(parts[0]), as: UTF8.self) == #"{"alg":"ES256","kid":"ABCDEFGHIJ"}"#)
        #expect(String(decoding: try decode(parts[1]), as: UTF8.self) == #"{"iss":"KLMNOPQRST","iat":1700000000}"#)
        let signature = try P256.Signing.ECDSASignature(rawRepresentation: try decode(parts[2]))
        #expect(key.publicKey.isValidSignature(signature, for: Data((parts[0] + "." + parts[1]).utf8)))
    }

    private func decode(_ text: String) throws -> Data {
        let padded = text.replacingOccurrences(of: "-", with: "+").replacingOccurrences(of: "_", with: "/")
            .padding(toLength: (text.count + 3) / 4 * 4, withPad: "=", startingAt: 0)
        return try #require(Data(base64Encoded: padded))
    }

    @Test func `unusable keys are refused with advice`() {
        let pem = P256.Signing.PrivateKey().pemRepresentation
        for (pem, keyID, teamID, word) in [
            (P384.Signing.PrivateKey().pemRepresentation, "ABCDEFGHIJ", "KLMNOPQRST", "P-256"),
            ("nonsense", "ABCDEFGHIJ", "KLMNOPQRST", "P-256"),
            ("-----BEGIN ENCRYPTED PRIVATE KEY-----", "ABCDEFGHIJ", "KLMNOPQRST", "encrypted"),
            (pem, "SHORT", "KLMNOPQRST", "key ID"), (pem, "ABCDEFGHIJ", "", "team ID"),
        ] {
            let error = #expect(throws: APNsError.self) { try APNsTokenKey(pem: pem, keyID: keyID, teamID: teamID) }
            #expect(error?.code == .credentialsInvalid)
            #expect(error?.message.contains(word) == true)
        }
        #expect(throws: APNsError.self) { try APNsTokenKey(path: "/nowhere.p8", keyID: "ABCDEFGHIJ", teamID: "KLMNOPQRST") }
    }

    @Test func `a PKCS 12 file opens only with its passphrase, and reports when its certificate expires`() throws {
        let (certificate, key) = try TestCertificates().issue(until: 5000)
        let bundle = NIOSSLPKCS12Bundle(
            certificateChain: try NIOSSLCertificate.fromPEMBytes(Array(certificate.utf8)),
            privateKey: try NIOSSLPrivateKey(bytes: Array(key.utf8), format: .pem))
        let bytes = try bundle.serialize(passphrase: "open".utf8)
        let opened = try APNsCertificate(p12: bytes, passphrase: "open")
        #expect(abs(opened.expiresAt.timeIntervalSinceNow - 5000) < 60)
        #expect(opened.validFrom < Date())
        for wrong in ["shut", ""] {
            let error = #expect(throws: APNsError.self) { try APNsCertificate(p12: bytes, passphrase: wrong) }
            #expect(error?.message.contains("passphrase") == true)
        }
        #expect(throws: APNsError.self) { try APNsCertificate(p12: [1, 2, 3]) }
        // Any damage is an error and not the end of the process.
        for index in stride(from: 0, to: bytes.count, by: 7) {
            var damaged = bytes
            damaged[index] ^= 0x55
            _ = try? APNsCertificate(p12: damaged, passphrase: "open")
        }
    }

    /// Made with `openssl pkcs12 -export -nokeys`.
    @Test func `a PKCS 12 file without a key is refused`() throws {
        let file = try #require(Data(base64Encoded: Self.withoutKey, options: .ignoreUnknownCharacters))
        let error = #expect(throws: APNsError.self) { try APNsCertificate(p12: Array(file), passphrase: "open") }
        #expect(error?.message.contains("private key") == true)
    }

    private static let withoutKey = """
        MIIClwIBAzCCAk0GCSqGSIb3DQEHAaCCAj4EggI6MIICNjCCAjIGCSqGSIb3DQEHBqCCAiMwggIfAgEAMIICGAYJKoZIhvcNAQcB
        MFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAjGe0OshInBGQICCAAwDAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEKGQ
        hfPDhDeCSRn1d4zoQcqAggGwRJTnLZWlZhVRnS3kAi092L8JGDxvZ9XoJZCisrD7m0+l+ZtSLNYBTaAIk9+b4dBTqGNjC4pEGTq5
        Gve0x5oS5We95FUkbJmlrlY0EUGNG0DXEnwrAdTGS+gcrr/5momBquF07UqaJssuS2WFdMwo32ftcSBGseQORgfewSMbISFwxBfE
        ia4uOycn8/eLGOqiT3oMxFEXRREzLjHrm6Ogo/6DfDJ5CJF+2S5q2OiwPPHbR629XxcX/yv51ealfJ7qavCY7Uvqvmawp7I4FeLN
        2wsrNvt8cdg1+cjnN0idGsxS7o5c0kaX/T03laxmrK78WZkjtJgulTK8lIwto6Dh6lmViWqElKFrg9EypMJbXgE8jpGcJ2nT97CA
        c18guJUBs4GiDqck5bBCwSqMUgvmi+RRW4/wHDT9+WQlvFsKadqH2d+fLJtsMoLkRAZFjixUXddgqNwrHNBVRklWCY6CEzdT9Ml0
        kplNqF7NK5lGAeEPpFIFFFV9EkPglmLhxOgKHy4IQ9iqYUq1KjglVpZmyK+cfG+1e5hhj65TztVEd9l5idS9OpQbR6A5V3z/QHRc
        MEEwMTANBglghkgBZQMEAgEFAAQguwfqJqpjmj8PEraiv9T6+qMZyDSXXk8ZwQPtt8EaI3oECOSWaSV5GmmdAgIIAA==
        """

    @Test func `PEM opens, and an expired certificate is refused when the client is made`() throws {
        let (certificate, key) = try TestCertificates().issue(from: -5000, until: -1000)
        let expired = try APNsCertificate(pem: certificate, privateKeyPEM: key)
        let error = #expect(throws: APNsError.self) { try APNsClient(.init(credentials: .certificate(expired))) }
        #expect(error?.code == .credentialsInvalid)
        #expect(error?.message.contains("expired") == true)
        #expect(throws: APNsError.self) { try APNsCertificate(pem: "x", privateKeyPEM: key) }
        #expect(throws: APNsError.self) { try APNsCertificate(pem: certificate, privateKeyPEM: "x") }
    }

    @Test func `a passphrase that NIOSSL cannot pass on is refused`() throws {
        let (certificate, _) = try TestCertificates().issue()
        let error = #expect(throws: APNsError.self) {
            try APNsCertificate(pem: certificate, privateKeyPEM: Self.encryptedKey, passphrase: "pässword")
        }
        #expect(error?.message.contains("ASCII") == true)
        #expect(throws: APNsError.self) {
            try APNsCertificate(pem: certificate, privateKeyPEM: Self.encryptedKey, passphrase: "wrong")
        }
    }

    /// Made with `openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -aes256 -pass pass:right`.
    private static let encryptedKey = """
        -----BEGIN ENCRYPTED PRIVATE KEY-----
        MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAhDyoiLXTuExQICCAAw
        DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEI7h9UYzfBpb8JRaYCVtzZ4EgZCx
        mBwEpwN9kaD/kdJstxoQRv80OgIxChlafmIYclNCKQzS5HEUVbNmFfFe2B4HZ7B8
        b9C/7zhL1hlOlOXoMM8wzhEDUewhW9OAjXl2xhDj+3wm7Q1fE96K+QZRv9TbMP2h
        jCjZKOUdzgdF9tjkhIvz0yob0i7DB0yptGLJLH3hjqaSJPhT8FQVuTCRPshIiko=
        -----END ENCRYPTED PRIVATE KEY-----
        """
}
