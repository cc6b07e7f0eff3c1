import Crypto
import Foundation
import NIOSSL
import TestSupport
import Testing

@testable import CarillonAPNs

/// The forms in which the library reads keys and certificates.
struct KeyFormTests {
    private func file(_ bytes: [UInt8]) throws -> String {
        let path = try TemporaryDirectory.make() + "/file"
        try Data(bytes).write(to: URL(filePath: path))
        return path
    }

    private func message<Value>(_ make: () throws -> Value) -> String {
        do {
            _ = try make()
            Issue.record("nothing is refused")
            return ""
        } catch {
            return (error as? APNsError)?.message ?? "\(type(of: error))"
        }
    }

    @Test(arguments: PEMForm.all)
    func `a token key is read in every form, from a file and from a text`(form: PEMForm) throws {
        let key = P256.Signing.PrivateKey()
        for (name, pem) in KeySample.blocks(of: key) {
            let path = try file(form.bytes(of: pem))
            let read = try APNsTokenKey(path: path, keyID: "ABCDEFGHIJ", teamID: "KLMNOPQRST")
            #expect(read.publicKeyBytes == [UInt8](key.publicKey.rawRepresentation), "\(name)")
            let taken = try APNsTokenKey(pem: form.text(of: pem), keyID: "ABCDEFGHIJ", teamID: "KLMNOPQRST")
            #expect(taken.publicKeyBytes == read.publicKeyBytes, "\(name)")
        }
    }

    @Test func `an unusable signing key is refused with its kind`() throws {
        for (name, text, words) in try KeySample.unusable() {
            let sentence = message { try APNsTokenKey(pem: text, keyID: "ABCDEFGHIJ", teamID: "KLMNOPQRST") }
            #expect(sentence.contains(words) && sentence.contains("P-256 private key"), "\(name): \(sentence)")
            #expect(!KeySample.leaks(sentence, text), "\(name): \(sentence)")
        }
    }

    @Test(arguments: PEMForm.texts)
    func `a certificate, its chain and its key are read in every form`(form: PEMForm) throws {
        let authority = try TestCertificates()
        let (certificate, key) = try authority.issue()
        let chain = certificate + "\n" + authority.authorityPEM + "\n"
        let apart = try APNsCertificate(pem: form.text(of: chain), privateKeyPEM: form.text(of: key + "\n"))
        #expect(apart.chain.count == 2)
        let together = form.text(of: key + "\n" + chain)
        #expect(try APNsCertificate(pem: together, privateKeyPEM: together).chain == apart.chain)
    }

    @Test(arguments: PEMForm.texts)
    func `an encrypted key is read with its passphrase in every form`(form: PEMForm) throws {
        for pem in [KeySample.encrypted, KeySample.encryptedBefore] {
            guard pem == KeySample.encrypted || form.description != "on one line" else { continue }
            let text = form.text(of: pem)
            // The key opens: it is the certificate that is another's.
            let other = message {
                try APNsCertificate(pem: KeySample.certificate, privateKeyPEM: text, passphrase: "right")
            }
            #expect(other.contains("does not belong"), "\(other)")
            let wrong = message {
                try APNsCertificate(pem: KeySample.certificate, privateKeyPEM: text, passphrase: "wrong")
            }
            #expect(wrong.contains("passphrase is wrong"), "\(wrong)")
            let none = message { try APNsCertificate(pem: KeySample.certificate, privateKeyPEM: text) }
            #expect(none.contains("encrypted"), "\(none)")
        }
    }

    @Test func `a certificate and a key of another are refused`() throws {
        let authority = try TestCertificates()
        let (first, second) = (try authority.issue(), try authority.issue())
        let sentence = message { try APNsCertificate(pem: first.certificate, privateKeyPEM: second.key) }
        #expect(sentence.contains("does not belong to the certificate"), "\(sentence)")
        let third = try authority.issue()
        let mixed = message { try APNsCertificate(pem: first.certificate, privateKeyPEM: second.key + "\n" + third.key) }
        #expect(mixed.contains("2 different keys belongs to the certificate"), "\(mixed)")
    }

    @Test func `of several private keys the one that belongs to the first certificate is used`() throws {
        let authority = try TestCertificates()
        let (first, second) = (try authority.issue(), try authority.issue())
        let identities = [first.certificate, first.key, second.certificate, second.key].joined(separator: "\n")
        _ = try APNsCertificate(pem: identities, privateKeyPEM: identities)
        _ = try APNsCertificate(pem: first.certificate, privateKeyPEM: second.key + "\n" + first.key)
        _ = try APNsCertificate(pem: first.certificate, privateKeyPEM: KeySample.encrypted + first.key)
    }

    @Test func `of several keys the encrypted one is tried, and its passphrase is not reported as a wrong key`() throws {
        let plain = P256.Signing.PrivateKey().pemRepresentation + "\n"
        let (certificate, own) = (KeySample.certificate, KeySample.encryptedCertificateKey)
        for keys in [own, plain + own, own + plain, KeySample.encrypted + own] {
            _ = try APNsCertificate(pem: certificate, privateKeyPEM: keys, passphrase: "right")
            let wrong = message { try APNsCertificate(pem: certificate, privateKeyPEM: keys, passphrase: "wrong") }
            #expect(wrong.contains("cannot be decrypted: the passphrase is wrong"), "\(wrong)")
            for passphrase in [nil, ""] {
                let none = message { try APNsCertificate(pem: certificate, privateKeyPEM: keys, passphrase: passphrase) }
                #expect(none.contains("is encrypted; it needs its passphrase"), "\(none)")
            }
        }
        let other = message {
            try APNsCertificate(pem: certificate, privateKeyPEM: plain + KeySample.encrypted, passphrase: "right")
        }
        #expect(other.contains("None of the 2 different keys"), "\(other)")
        let used = try APNsCertificate.privateKey(in: plain + own, passphrase: "right", of: certificate)
        #expect(used == own)
    }

    @Test func `an unusable key of a certificate is refused with its kind`() throws {
        for (name, text, words) in try KeySample.unusable() {
            // Keys of other kinds can belong to a certificate, but not to this one.
            let isKey = name.hasPrefix("an RSA") || name.hasPrefix("a P-")
            let sentence = message { try APNsCertificate(pem: KeySample.certificate, privateKeyPEM: text) }
            #expect(sentence.contains(isKey ? "does not belong" : words), "\(name): \(sentence)")
            #expect(!KeySample.leaks(sentence, text), "\(name): \(sentence)")
        }
    }

    @Test(arguments: [
        ("", "is empty"), ("nonsense", "-----BEGIN"), (KeySample.certificateKey, "a P-256 private key"),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", "cannot be decoded"),
        (String(KeySample.certificate.dropLast(20)), "is missing"),
    ])
    func `a file that is not a certificate is refused with its kind`(text: String, words: String) throws {
        let sentence = message { try APNsCertificate(pem: text, privateKeyPEM: KeySample.certificateKey) }
        #expect(sentence.contains(words) && sentence.contains("a certificate in PEM form"), "\(sentence)")
        var configuration = APNsClient.Configuration(credentials: try Samples.credentials())
        configuration.trustRoots = text
        let roots = message { try configuration.trust() }
        #expect(roots.hasPrefix("trustRoots ") && roots.contains(words), "\(roots)")
    }

    @Test(arguments: PEMForm.texts)
    func `authorities are read in every form`(form: PEMForm) throws {
        var configuration = APNsClient.Configuration(credentials: try Samples.credentials())
        configuration.trustRoots = form.text(of: KeySample.certificate + KeySample.certificate)
        guard case .certificates(let roots)? = try configuration.trust().trustRoots else {
            Issue.record("no authorities")
            return
        }
        #expect(roots.count == 2)
    }

    @Test func `bytes that are not a PKCS 12 file are refused with their kind`() {
        let certificate = message { try APNsCertificate(p12: KeySample.der(KeySample.certificate)) }
        #expect(certificate.contains("is a certificate without a private key"), "\(certificate)")
        let text = message { try APNsCertificate(p12: Array(KeySample.certificateKey.utf8)) }
        #expect(text.contains("PEM"), "\(text)")
        #expect(!KeySample.leaks(text, KeySample.certificateKey))
    }

    @Test(arguments: [
        ("ABC-EFGHIJ", "\"ABC-EFGHIJ\" has the character \"-\" at position 4"),
        ("ABCDEFGHI ", "the character U+0020 at position 10"), ("ABCDEFGHI\u{410}", "\"\u{410}\" (U+0410) at position 10"),
        ("ABCDEFGHI\n", "the character U+000A at position 10"), ("SHORT", "\"SHORT\" has 5 characters"),
        ("ABCDEFGHIJK", "has 11 characters"), ("", "has 0 characters"), ("A", "has 1 character;"),
    ])
    func `a name of a key or a team that is wrong is refused with the character or the length`(
        text: String, words: String
    ) {
        let pem = P256.Signing.PrivateKey().pemRepresentation
        let key = message { try APNsTokenKey(pem: pem, keyID: text, teamID: "KLMNOPQRST") }
        #expect(key.hasPrefix("The key ID") && key.contains(words) && key.contains("10 letters"), "\(key)")
        let team = message { try APNsTokenKey(pem: pem, keyID: "ABCDEFGHIJ", teamID: text) }
        #expect(team.hasPrefix("The team ID") && team.contains(words), "\(team)")
    }

    @Test func `a key at the place of its name is not repeated`() {
        let pem = P256.Signing.PrivateKey().pemRepresentation
        let sentence = message { try APNsTokenKey(pem: pem, keyID: pem, teamID: "KLMNOPQRST") }
        #expect(sentence.contains("The key ID has the character \"-\" at position 1"), "\(sentence)")
        #expect(!KeySample.leaks(sentence, pem))
    }

    @Test func `a key in the place of its file is not repeated`() {
        for text in KeySample.leftBare(KeySample.certificateKey) {
            let key = message { try APNsTokenKey(path: text, keyID: "ABCDEFGHIJ", teamID: "KLMNOPQRST") }
            let certificate = message { try APNsCertificate(p12Path: text) }
            #expect(key.contains("its path is not shown because it could be a key"), "\(key)")
            #expect(!KeySample.leaks(key + certificate, text, 8), "\(key) \(certificate)")
        }
    }

    @Test func `a path that resembles a key is named if its directory exists`() throws {
        let path = try TemporaryDirectory.make() + "/" + String(repeating: "0a", count: 32)
        let sentence = message { try APNsTokenKey(path: path, keyID: "ABCDEFGHIJ", teamID: "KLMNOPQRST") }
        #expect(sentence == "The file of the token key cannot be read: \(path)")
    }

    @Test func `a setting that cannot work is refused with its value`() throws {
        typealias Configuration = APNsClient.Configuration
        let changes: [(String, (inout Configuration) -> Void)] = [
            ("timeout must be more than 0; it is -1", { $0.timeout = .seconds(-1) }),
            ("connectTimeout must be more than 0; it is 0", { $0.connectTimeout = .zero }),
            ("it is \"a b\"", { $0.bundleID = "a b" }), ("\"\" and 70000", { $0.proxy = .http(host: "", port: 70_000) }),
            ("pool.idleLimit must not be below 0; it is -1", { $0.pool.idleLimit = .seconds(-1) }),
            ("pool.growsAfter must not be below 0; it is -1", { $0.pool.growsAfter = .seconds(-1) }),
            ("pool.pingsAfterIdle must be more than 0", { $0.pool.pingsAfterIdle = .zero }),
            ("pool.suspectsAfter must be more than 0", { $0.pool.suspectsAfter = .zero }),
            ("pool.answersPingWithin must be more than 0", { $0.pool.answersPingWithin = .zero }),
            ("port is 0; it must be", { $0.environment = .custom(host: "h", port: 0) }),
            ("\"h h\" must be printable", { $0.environment = .custom(host: "h h", port: 1) }),
        ]
        for (words, change) in changes {
            var configuration = Configuration(credentials: try Samples.credentials())
            change(&configuration)
            let sentence = message { try configuration.check() }
            #expect(sentence.contains(words), "\(sentence)")
        }
    }
}
