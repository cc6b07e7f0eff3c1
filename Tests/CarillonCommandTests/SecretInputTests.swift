import ArgumentParser
import Foundation
import TestSupport
import Testing

@testable import CarillonCommand

/// Files with secrets that commands read.
struct SecretInputTests {
    private static let privateKey = "-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n"
    private static let certificate = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"

    private func withFile(_ content: String, _ mode: Int, _ work: (String) throws -> Void) throws {
        try withFile(Data(content.utf8), mode, work)
    }

    private func withFile(_ content: Data, _ mode: Int, _ work: (String) throws -> Void) throws {
        let path = NSTemporaryDirectory() + "/carillon-\(UUID().uuidString)"
        try content.write(to: URL(fileURLWithPath: path))
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
        defer { try? FileManager.default.removeItem(atPath: path) }
        try work(path)
    }

    @Test(arguments: [Self.privateKey, Self.certificate + Self.privateKey, "sesame\n", "\u{30}\u{82}"])
    func `a secret that all users can read is refused`(content: String) throws {
        try withFile(content, 0o644) { path in
            let fault = #expect(throws: CommandFault.self) { try InputFile.secret(path) }
            #expect(fault?.code == ExitStatus.noInput)
            #expect(fault?.message.contains(path) == true && fault?.message.contains("chmod o=") == true)
            _ = try InputFile.bytes(path)
        }
        try withFile(content, 0o600) { path in
            let read = try InputFile.secret(path)
            #expect(read == Data(content.utf8))
        }
    }

    @Test func `a certificate without a private key is no secret where a certificate is read`() throws {
        try withFile(Self.certificate, 0o644) { path in
            let read = try InputFile.secretOrCertificate(path)
            #expect(read == Data(Self.certificate.utf8))
            let fault = #expect(throws: CommandFault.self) { try CredentialFiles.parse(["--cert", path]).body() }
            #expect(fault?.message.contains("chmod") == false && fault?.message.contains("--cert-key") == true)
            #expect(throws: CommandFault.self) { try InputFile.secret(path) }
        }
        try withFile(Self.certificate + Self.privateKey, 0o644) { path in
            #expect(throws: CommandFault.self) { try InputFile.secretOrCertificate(path) }
        }
    }

    @Test(arguments: [KeySample.encrypted, KeySample.encryptedBefore])
    func `an encrypted key is a secret where a certificate is read`(key: String) throws {
        try withFile(KeySample.certificate + key, 0o644) { path in
            let fault = #expect(throws: CommandFault.self) { try InputFile.secretOrCertificate(path) }
            #expect(fault?.message.contains("chmod o=") == true)
        }
    }

    @Test(arguments: [KeySample.der(KeySample.certificateKey), KeySample.archive, [0x30, 0x80, 0x02, 0x01, 0x03]])
    func `a key and an archive in DER or BER are secrets where a certificate is read`(content: [UInt8]) throws {
        try withFile(Data(content), 0o644) { path in
            let fault = #expect(throws: CommandFault.self) { try InputFile.secretOrCertificate(path) }
            #expect(fault?.message.contains("chmod o=") == true)
            let read = #expect(throws: CommandFault.self) {
                try APNsCredentialOptions.parse(["--cert", path]).certificate()
            }
            #expect(read?.message.contains("chmod o=") == true)
        }
        try withFile(Data(KeySample.der(KeySample.certificate)), 0o644) { path in
            _ = try InputFile.secretOrCertificate(path)
        }
    }

    @Test func `each option for a secret file checks it`() throws {
        let key = ["--key-id", "ABC1234567", "--team-id", "DEF1234567"]
        try withFile("sesame\n", 0o644) { open in
            try withFile(Self.privateKey, 0o644) { pem in
                try withFile(Self.certificate, 0o644) { certificate in
                    let loads: [() throws -> Void] = [
                        { _ = try APNsCredentialOptions.parse(["--key", pem] + key).tokenKey() },
                        { _ = try APNsCredentialOptions.parse(["--cert", pem]).certificate() },
                        { _ = try APNsCredentialOptions.parse(["--cert", open]).certificate() },
                        { _ = try APNsCredentialOptions.parse(["--cert", certificate, "--cert-key", pem]).certificate() },
                        // A file of the wrong kind is checked before it is understood.
                        { _ = try APNsCredentialOptions.parse(["--key", certificate] + key).tokenKey() },
                        { _ = try CredentialFiles.parse(["--p12", certificate]).body() },
                        { _ = try CredentialFiles.parse(["--cert", certificate, "--cert-key", certificate]).body() },
                        { _ = try PassphraseFile.read(certificate) },
                        { _ = try PassphraseFile.read(open) },
                        { _ = try CredentialFiles.parse(["--p8", pem] + key).body() },
                        { _ = try CredentialFiles.parse(["--p12", open]).body() },
                        { _ = try CredentialFiles.parse(["--cert", pem]).body() },
                        { _ = try CredentialFiles.parse(["--cert", certificate, "--cert-key", pem]).body() },
                        { _ = try CredentialFiles.parse(["--cert", certificate, "--passphrase-file", open]).body() },
                    ]
                    for (number, load) in loads.enumerated() {
                        let fault = #expect(throws: CommandFault.self, "\(number)") { try load() }
                        #expect(fault?.message.contains("chmod o=") == true, "\(number)")
                    }
                }
            }
        }
    }
}
