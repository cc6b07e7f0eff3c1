import ArgumentParser
import CarillonBasics
import CarillonServer
import Crypto
import Foundation
import TestSupport
import Testing

@testable import CarillonCommand

/// The forms in which commands read keys and certificates.
struct KeyFormTests {
    private let directory: String

    init() throws { directory = try TemporaryDirectory.make() }

    private func file(_ name: String, _ bytes: [UInt8], mode: Int = 0o600) throws -> String {
        let path = "\(directory)/\(name)"
        try Data(bytes).write(to: URL(filePath: path))
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
        return path
    }

    private func message<Value>(_ work: () throws -> Value) -> String {
        do {
            _ = try work()
            Issue.record("nothing is refused")
            return ""
        } catch {
            return (error as? CommandFault)?.message ?? "\(type(of: error))"
        }
    }

    private func member(_ name: String, of body: JSONValue) -> String? {
        if case .string(let text)? = body[name] { text } else { nil }
    }

    private static let names = ["--key-id", "ABC1234567", "--team-id", "DEF1234567"]

    @Test(arguments: PEMForm.all)
    func `a private key is read in every form by every command`(form: PEMForm) throws {
        let key = P256.Signing.PrivateKey()
        for (name, pem) in KeySample.blocks(of: key) {
            let path = try file("key", form.bytes(of: pem))
            #expect(try APNsCredentialOptions.parse(["--key", path] + Self.names).tokenKey() != nil, "\(name)")
            let body = try CredentialFiles.parse(["--p8", path] + Self.names).body()
            let read = try KeyMaterial(member("p8", of: body) ?? "").p256PrivateKey()
            #expect(read == [UInt8](key.rawRepresentation), "\(name)")
            let signer = try VapidSigner(key: Data(form.bytes(of: pem)), subject: nil)
            let header = try signer.authorization(forEndpoint: "https://push.example.com/push/x", at: Date())
            #expect(header.hasSuffix("k=" + Base64URL.encode(key.publicKey.x963Representation)), "\(name)")
        }
    }

    @Test(arguments: PEMForm.all)
    func `certificates are read in every form by every command`(form: PEMForm) throws {
        let cert = try file("cert", form.bytes(of: KeySample.certificate), mode: 0o644)
        let key = try file("key", form.bytes(of: KeySample.certificateKey))
        let both = try file("both", form.bytes(of: KeySample.certificateKey + KeySample.certificate))
        for options in [["--cert", cert, "--cert-key", key], ["--cert", both]] {
            #expect(try APNsCredentialOptions.parse(options).certificate() != nil)
            let body = try CredentialFiles.parse(options).body()
            #expect(try KeyMaterial(member("certificate", of: body) ?? "").certificates().count == 1)
            #expect(try KeyMaterial(member("privateKey", of: body) ?? "").p256PrivateKey().count == 32)
        }
        #expect(try TrustedFile(cert, of: "--ca").certificates.count == 1)
        let flags = ["data": "/d", "outward-ca": cert]
        let settings = try ServeOptions(flags: flags, file: nil, environment: ["CARILLON_APNS_CA": cert]).settings()
        #expect(settings.outward.authorityFile == cert)
        #expect(try KeyMaterial(settings.gateways.authorities ?? "").certificates().count == 1)
    }

    @Test func `a certificate and a key are read from DER`() throws {
        let cert = try file("c.cer", KeySample.der(KeySample.certificate), mode: 0o644)
        let key = try file("c.key", KeySample.der(KeySample.certificateKey))
        let options = ["--cert", cert, "--cert-key", key]
        #expect(try APNsCredentialOptions.parse(options).certificate() != nil)
        let body = try CredentialFiles.parse(options).body()
        #expect(member("certificate", of: body) == KeySample.certificate)
        #expect(try TrustedFile(cert, of: "--ca").pem == KeySample.certificate)
        #expect(try APNsCredentialOptions.parse(["--key", key] + Self.names).tokenKey() != nil)
        _ = try VapidSigner(key: Data(KeySample.der(KeySample.certificateKey)), subject: nil)
    }

    @Test func `a certificate without its key is refused with advice`() throws {
        for bytes in [KeySample.der(KeySample.certificate), Array(KeySample.certificate.utf8)] {
            let cert = try file("c.cer", bytes, mode: 0o644)
            let expected =
                "\(cert) is a certificate without a private key; export the certificate and its key together, or name the key with --cert-key"
            #expect(message { try APNsCredentialOptions.parse(["--cert", cert]).certificate() } == expected)
            #expect(message { try CredentialFiles.parse(["--cert", cert]).body() } == expected)
        }
        let p12 = try file("c.cer", KeySample.der(KeySample.certificate))
        let sentence = message { try CredentialFiles.parse(["--p12", p12]).body() }
        #expect(sentence.contains("is a certificate without a private key"), "\(sentence)")
        let pem = try file("c.pem", Array(KeySample.certificateKey.utf8))
        #expect(message { try CredentialFiles.parse(["--p12", pem]).body() }.contains("name it with --cert"))
    }

    @Test func `a file that is not a certificate is refused with its kind`() throws {
        let der = KeySample.der(KeySample.certificate)
        let texts: [([UInt8], String)] = [
            ([], "is empty"), (Array("nonsense".utf8), "-----BEGIN"), (Array(der.dropLast(9)), "is cut off"),
            (KeySample.der(KeySample.certificateKey), "is a P-256 private key"),
        ]
        for (bytes, words) in texts {
            let cert = try file("cert", bytes)
            let sentence = message { try APNsCredentialOptions.parse(["--cert", cert]).certificate() }
            #expect(sentence.hasPrefix(cert) && sentence.contains(words) && sentence.contains("a .p12 file"), "\(sentence)")
        }
        let cert = try file("cert", der)
        let key = try file("key", Array(KeySample.certificate.utf8))
        let sentence = message { try APNsCredentialOptions.parse(["--cert", cert, "--cert-key", key]).certificate() }
        #expect(sentence == "\(key) is a certificate; it must be a private key in PEM or DER form")
    }

    @Test func `an unusable key is refused with its kind`() throws {
        for (name, text, words) in try KeySample.unusable() {
            let path = try file("key", Array(text.utf8))
            let token = message { try APNsCredentialOptions.parse(["--key", path] + Self.names).load() }
            #expect(token.contains(words) && token.contains("P-256 private key"), "\(name): \(token)")
            let vapid = message { try VapidSigner(key: Data(text.utf8), subject: nil) }
            #expect(vapid.contains(words) && vapid.contains("P-256 private key"), "\(name): \(vapid)")
            let p8 = message { try CredentialFiles.parse(["--p8", path] + Self.names).body() }
            #expect(p8.hasPrefix(path) && p8.contains(words) && p8.contains("P-256 private key"), "\(name): \(p8)")
            #expect(!KeySample.leaks(token + vapid + p8, text), "\(name)")
        }
    }

    @Test func `an archive in the place of a token key is refused before anything is sent`() throws {
        let path = try file("push.p12", KeySample.archive)
        let sentence = message { try CredentialFiles.parse(["--p8", path] + Self.names).body() }
        #expect(sentence.hasPrefix("\(path) is a .p12 file; it must be a P-256 private key"), "\(sentence)")
    }

    @Test func `the other contents of a file of credentials are not sent`() throws {
        let key = P256.Signing.PrivateKey()
        let pem = key.pemRepresentation + "\n"
        let former = P256.Signing.PrivateKey().pemRepresentation.split(separator: "\n").joined()
        let escaped = pem.replacing("\n", with: "\\n")
        let texts = ["{\"key\": \"\(escaped)\", \"other\": \"sesame\"}", "# \(former)\nOTHER=sesame\nKEY=\"\(escaped)\"\n"]
        for text in texts {
            let path = try file("config", Array(text.utf8))
            let body = try CredentialFiles.parse(["--p8", path] + Self.names).body()
            #expect(try member("p8", of: body) == KeyMaterial(pem).privateKey().text)
        }
        let other = P256.Signing.PrivateKey().pemRepresentation + "\n"
        let certificate = "# \(former)\nOTHER=sesame\n" + KeySample.certificate
        let keys = "OTHER=sesame\n" + KeySample.encrypted + other + KeySample.certificateKey
        let (cert, certKey) = (try file("cert", Array(certificate.utf8)), try file("key", Array(keys.utf8)))
        let both = try file("both", Array((keys + certificate).utf8))
        for options in [["--cert", cert, "--cert-key", certKey], ["--cert", both]] {
            let body = try CredentialFiles.parse(options).body()
            #expect(member("certificate", of: body) == KeySample.certificate)
            #expect(member("privateKey", of: body) == KeySample.certificateKey)
        }
    }

    @Test func `a file that is not an archive is not sent as one`() throws {
        let texts = ["OTHER=sesame\n", "{\"other\": \"sesame\"}", ""].map { Array($0.utf8) }
        for content in texts + [KeySample.der(KeySample.certificateKey), [0x30, 0x82, 0x01, 0x00, 0x02]] {
            let path = try file("config", content)
            let sentence = message { try CredentialFiles.parse(["--p12", path]).body() }
            #expect(sentence == "\(path) is not a .p12 file, or is damaged")
        }
        for content in [KeySample.archive, [0x30, 0x80, 0x02, 0x01, 0x03]] {
            let path = try file("push.p12", content)
            let body = try CredentialFiles.parse(["--p12", path]).body()
            #expect(member("p12", of: body) == Data(content).base64EncodedString())
        }
    }

    @Test func `a key in the place of a certificate is not sent`() throws {
        let key = try file("key", Array(KeySample.certificateKey.utf8))
        let sentence = message { try CredentialFiles.parse(["--cert", key, "--cert-key", key]).body() }
        #expect(sentence == "\(key) is a P-256 private key; it must be a certificate in PEM or DER form")
    }

    @Test func `a VAPID key in base64url is its 32 bytes`() throws {
        let key = P256.Signing.PrivateKey()
        _ = try VapidSigner(key: Data("\u{FEFF}\(Base64URL.encode(key.rawRepresentation))\r\n".utf8), subject: nil)
        let texts: [(String, String)] = [
            (Base64URL.encode(key.publicKey.x963Representation), "is a public key"),
            (Base64URL.encode([UInt8](repeating: 1, count: 16)), "16 bytes in base64url"),
            (Base64URL.encode([UInt8](repeating: 255, count: 32)), "not valid on the curve"),
            ("not base64", "is not base64url"),
        ]
        for (text, words) in texts {
            let sentence = message { try VapidSigner(key: Data(text.utf8), subject: nil) }
            #expect(sentence.contains(words) && sentence.contains("32 bytes in base64url"), "\(sentence)")
        }
    }

    @Test(arguments: [
        ("", "is empty"), ("nonsense", "-----BEGIN"), (KeySample.certificateKey, "is a P-256 private key"),
        (String(KeySample.certificate.dropLast(20)), "is missing"),
    ])
    func `a file without certificates to trust is refused with its kind`(text: String, words: String) throws {
        let path = try file("ca", Array(text.utf8))
        let reads: [(String, () throws -> Void)] = [
            ("--ca", { _ = try TrustedFile(path, of: "--ca") }),
            ("\"outward-ca\"", { _ = try Self.settings(["outward-ca": path], [:]) }),
            ("\"apns-ca\"", { _ = try Self.settings([:], ["CARILLON_APNS_CA": path]) }),
        ]
        for (option, read) in reads {
            let sentence = message(read)
            #expect(sentence.hasPrefix("the file \(path) of \(option) ") && sentence.contains(words), "\(sentence)")
            #expect(!KeySample.leaks(sentence, text), "\(sentence)")
        }
    }

    private static func settings(_ flags: [String: String], _ environment: [String: String]) throws -> ServerSettings {
        try ServeOptions(flags: ["data": "/d"].merging(flags) { $1 }, file: nil, environment: environment).settings()
    }

    @Test func `a key in the place of its file is not repeated`() throws {
        let key = try file("key", Array(KeySample.certificateKey.utf8))
        let cert = try file("cert", Array(KeySample.certificate.utf8))
        for text in KeySample.leftBare(KeySample.certificateKey) {
            let names = ["--team-id", "DEF1234567"]
            let apns = [
                ["--key=\(text)"] + names, ["--key=\(text)"] + Self.names, ["--cert=\(text)"],
                ["--cert", cert, "--cert-key=\(text)"], ["--cert", cert, "--passphrase-file=\(text)"],
                ["--key", key, "--key-id=\(text)"] + names, ["--key", key, "--key-id", "ABC1234567", "--team-id=\(text)"],
            ]
            for options in apns {
                expectSecret(text) { _ = try APNsCredentialOptions.parse(options).load() }
            }
            let files = [
                ["--p8=\(text)"] + names, ["--p8=\(text)"] + Self.names, ["--p12=\(text)"], ["--cert=\(text)"],
                ["--cert", cert, "--cert-key=\(text)"], ["--cert", cert, "--passphrase-file=\(text)"],
            ]
            for options in files {
                expectSecret(text) { _ = try CredentialFiles.parse(options).body() }
            }
            expectSecret(text) { _ = try TrustedFile(text, of: "--ca") }
            expectSecret(text) { _ = try ServeSources.file(text) }
            expectSecret(text) { _ = try InputFile.secret(text) }
        }
    }

    /// Expects an error whose output has no 8 characters of a key.
    private func expectSecret(_ key: String, _ work: () throws -> Void) {
        do {
            try work()
            Issue.record("nothing is refused")
        } catch {
            let output = (error as? CommandFault)?.message ?? APNsCredentialOptions.fullMessage(for: error)
            #expect(!output.isEmpty && !KeySample.leaks(output, key, 8), "\(output)")
        }
    }

    @Test func `the character that is wrong in a key's ID is named`() throws {
        let path = try file("key", Array(P256.Signing.PrivateKey().pemRepresentation.utf8))
        let options = ["--key", path, "--key-id", "ABC-EFGHIJ", "--team-id", "DEF1234567"]
        let sentence = message { try APNsCredentialOptions.parse(options).load() }
        #expect(sentence.contains("\"ABC-EFGHIJ\" has the character \"-\" at position 4"), "\(sentence)")
    }
}
