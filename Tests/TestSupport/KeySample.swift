package import Crypto
import _CryptoExtras

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Texts of real keys, made for a test.
package enum KeySample {
    /// The ways in which a P-256 key is written in a block.
    package static func blocks(of key: P256.Signing.PrivateKey) -> [(name: String, pem: String)] {
        [
            ("PKCS #8", key.pemRepresentation + "\n"), ("SEC 1", sec1(key, namesCurve: true)),
            ("SEC 1 without the curve", sec1(key, namesCurve: false)),
        ]
    }

    /// A block "EC PRIVATE KEY" (RFC 5915).
    package static func sec1(_ key: P256.Signing.PrivateKey, namesCurve: Bool) -> String {
        let point = [UInt8](key.publicKey.x963Representation)
        var content: [UInt8] = [0x02, 0x01, 0x01, 0x04, 0x20] + [UInt8](key.rawRepresentation)
        if namesCurve { content += [0xA0, 0x0A, 0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07] }
        content += [0xA1, 0x44, 0x03, 0x42, 0x00] + point
        return block("EC PRIVATE KEY", [0x30, UInt8(content.count)] + content)
    }

    package static func block(_ label: String, _ bytes: [UInt8]) -> String {
        let base64 = Data(bytes).base64EncodedString(options: [.lineLength64Characters, .endLineWithLineFeed])
        return "-----BEGIN \(label)-----\n\(base64)\n-----END \(label)-----\n"
    }

    /// The bytes of the first block of a strict text.
    package static func der(_ pem: String) -> [UInt8] {
        let lines = pem.split(separator: "\n").drop { !$0.hasPrefix("-----BEGIN") }.dropFirst()
        return Data(base64Encoded: lines.prefix { !$0.hasPrefix("-----END") }.joined()).map { [UInt8]($0) } ?? []
    }

    /// The shortest PKCS #12 structure: a version and content that is empty.
    package static let archive: [UInt8] = [0x30, 0x05, 0x02, 0x01, 0x03, 0x30, 0x00]

    /// Texts that are not one P-256 private key, with parts of the sentence about each.
    package static func unusable() throws -> [(name: String, text: String, words: String)] {
        let key = P256.Signing.PrivateKey()
        let pem = key.pemRepresentation + "\n"
        let base64 = Data(der(pem)).base64EncodedString()
        func block(_ base64: String, end: String = "PRIVATE KEY") -> String {
            "-----BEGIN PRIVATE KEY-----\n\(base64)\n-----END \(end)-----\n"
        }
        let other = P256.Signing.PrivateKey()
        let rsa = try _RSA.Signing.PrivateKey(keySize: .bits2048)
        let curve = "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----"
        let withFourHyphens = pem.replacing("KEY-----\n", with: "KEY----\n", maxReplacements: 1)
        let blocks: [(String, String, String)] = [
            ("base64 that lacks lines", block(String(base64.prefix(64))), "48 bytes of 138"),
            ("base64 that lacks a character", block(String(base64.prefix(61))), "61 characters of base64"),
            ("a character that is not base64", block("*\(base64.dropFirst())"), "the character \"*\""),
            ("padding in the middle", block("AA==\(base64.dropFirst(4))"), "\"=\""),
            ("an empty block", block(""), "is empty"),
            ("a block of something else", block("AAAA"), "cannot be decoded"),
            ("another label at the end", block(base64, end: "EC PRIVATE KEY"), "\"-----END EC PRIVATE KEY-----\""),
        ]
        let texts: [(String, String, String)] = [
            ("nothing", "", "is empty"),
            ("blanks", "\u{FEFF} \r\n", "is empty"),
            ("another text", "nonsense", "\"-----BEGIN\""),
            ("no end", "-----BEGIN PRIVATE KEY-----\n\(base64)\n", "\"-----END PRIVATE KEY-----\" is missing"),
            ("four hyphens at the end", String(pem.dropLast(2)), "\"-----END PRIVATE KEY-----\" is missing"),
            ("four hyphens at the start", withFourHyphens, "hyphens"),
            ("the curve alone", curve, "parameters"),
        ]
        let keys: [(String, String, String)] = [
            ("two different keys", "\(pem)\(other.pemRepresentation)", "2 different keys"),
            ("an encrypted key", encrypted, "encrypted"),
            ("an old encrypted key", encryptedBefore, "encrypted"),
            ("an RSA key", rsa.pkcs8PEMRepresentation, "an RSA private key"),
            ("a P-384 key", P384.Signing.PrivateKey().pemRepresentation, "a P-384 private key"),
            ("a P-521 key", P521.Signing.PrivateKey().pemRepresentation, "a P-521 private key"),
            ("a public key", key.publicKey.pemRepresentation, "a P-256 public key"),
            ("a certificate", certificate, "a certificate"),
        ]
        return (blocks + texts + keys).map { (name: $0.0, text: $0.1, words: $0.2) }
    }

    /// The forms in which a variable of a shell can have a key.
    package static func leftBare(_ pem: String) -> [String] {
        let base64 = Data(der(pem)).base64EncodedString()
        return [
            pem, pem.replacing("\n", with: "\\n"), pem.replacing("\n", with: ""), base64,
            base64.replacing("+", with: "-").replacing("/", with: "_"), "/" + base64,
        ]
    }

    /// Whether a sentence repeats a part of the base64 of a text, with at least the given number of characters.
    package static func leaks(_ sentence: String, _ text: String, _ length: Int = 16) -> Bool {
        let parts = text.replacing("\\n", with: "\n").replacing("-----", with: "\n")
        return parts.split { $0.isNewline || $0 == " " }.filter { $0.count >= max(length, 16) }
            .contains { line in
                let characters = Array(line)
                return (0...(characters.count - length)).contains {
                    sentence.contains(String(characters[$0..<$0 + length]))
                }
            }
    }

    /// Made with `openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -aes256 -pass pass:right`.
    package static let encrypted = """
        -----BEGIN ENCRYPTED PRIVATE KEY-----
        MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAhDyoiLXTuExQICCAAw
        DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEI7h9UYzfBpb8JRaYCVtzZ4EgZCx
        mBwEpwN9kaD/kdJstxoQRv80OgIxChlafmIYclNCKQzS5HEUVbNmFfFe2B4HZ7B8
        b9C/7zhL1hlOlOXoMM8wzhEDUewhW9OAjXl2xhDj+3wm7Q1fE96K+QZRv9TbMP2h
        jCjZKOUdzgdF9tjkhIvz0yob0i7DB0yptGLJLH3hjqaSJPhT8FQVuTCRPshIiko=
        -----END ENCRYPTED PRIVATE KEY-----

        """

    /// ``certificateKey``, encrypted with `openssl pkcs8 -topk8 -v2 aes256 -passout pass:right`.
    package static let encryptedCertificateKey = """
        -----BEGIN ENCRYPTED PRIVATE KEY-----
        MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAgMYfcLEKNeqwICCAAw
        DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEELxyAOP7af9PsBvSml5ENLYEgZDa
        NZcCU9yTIyRraMD7ZhudvpMyxTTgdpU/8r0TABsQyHVLSOVLGI5a4/RtpuLOzu3o
        yUQ4wOwOoor26VrQ/J0pK41uR09eeQ8udXqBzjKQLXuW+fWegeAHqUM8ZE7LvjCB
        AFg3KuNZFrlT62F3AZPaqqROuiweE1Y2bwRJg1d2Lg0O1+rfR3iyZ4UmSsFNDpE=
        -----END ENCRYPTED PRIVATE KEY-----

        """

    /// Made with `openssl ec -aes256 -passout pass:right`, which writes the form before PKCS #8.
    package static let encryptedBefore = """
        -----BEGIN EC PRIVATE KEY-----
        Proc-Type: 4,ENCRYPTED
        DEK-Info: AES-256-CBC,BC6C33B5B6C0F7CC97ECA10611B42ABC

        o4ec6cOf0RPQ2qjM89rGRWF1Yc0Ob1q/pf09cLtAq5Jh297U6BxToxyQ3Jtt1CZt
        zMX6rgUnvnJftgCcdqQ1j3lH9FyaLU5Y5igfU2W/OTAE6JFcP0a/Zjoj5vK7MumK
        zUVySHMZINCToLz7PPY15j4tPiASQ88A+sk32IeweJ4=
        -----END EC PRIVATE KEY-----

        """

    /// The certificate of ``certificateKey``, which signs itself for the name "localhost" until 2124.
    package static let certificate = """
        -----BEGIN CERTIFICATE-----
        MIIBizCCATKgAwIBAgIUOe7aOpMiZ/5xgx2GgufTQWzSijkwCgYIKoZIzj0EAwIw
        IDEeMBwGA1UEAwwVQ2FyaWxsb24gY2xpZW50IHRlc3RzMCAXDTI0MDEwMTAwMDAw
        MFoYDzIxMjQwMTAxMDAwMDAwWjAgMR4wHAYDVQQDDBVDYXJpbGxvbiBjbGllbnQg
        dGVzdHMwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAR99lP9hqjTbGgkEi2iztHn
        ZouM6/kg5y/o/LWWOHU2/wDwnmxy43fkFPEVrExaYy4xSKBUT7mhERtT9t3rRMyR
        o0gwRjAUBgNVHREEDTALgglsb2NhbGhvc3QwDwYDVR0TAQH/BAUwAwEB/zAdBgNV
        HQ4EFgQUNSjOvYVPO3CQEiwmz5molnvguakwCgYIKoZIzj0EAwIDRwAwRAIgIfII
        PHXlXQ7hG5eRJNpr5LQWkui0kDu5QMuxOMkV6Z4CIFtm989c0o7XdeDi7jacK8I6
        3JZHAh4wk6s/NuuksmsE
        -----END CERTIFICATE-----

        """

    package static let certificateKey = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgX3mnq8vWRMosoZLZ
        VaOA6Ezolk8wCBkBgRUPzKAiZ6yhRANCAAR99lP9hqjTbGgkEi2iztHnZouM6/kg
        5y/o/LWWOHU2/wDwnmxy43fkFPEVrExaYy4xSKBUT7mhERtT9t3rRMyR
        -----END PRIVATE KEY-----

        """
}
