import Foundation
import NIOSSL
import TestSupport
import Testing

@testable import CarillonClient

/// The file of `trustRootsPath`.
struct TrustRootsTests {
    private func file(_ bytes: [UInt8]) throws -> String {
        let path = try TemporaryDirectory.make() + "/roots"
        try Data(bytes).write(to: URL(filePath: path))
        return path
    }

    @Test(arguments: PEMForm.all)
    func `certificates are read in every form`(form: PEMForm) throws {
        let path = try file(form.bytes(of: KeySample.certificate + KeySample.certificate))
        #expect(try TrustRoots.certificates(in: path).count == 2)
        _ = try TrustRoots.context(path: path)
    }

    @Test func `a certificate is read from DER`() throws {
        let der = KeySample.der(KeySample.certificate)
        #expect(try TrustRoots.certificates(in: try file(der)).map { try $0.toDERBytes() } == [der])
    }

    @Test(arguments: [
        ("", "is empty"), ("nonsense", "-----BEGIN"), (KeySample.certificateKey, "is a P-256 private key"),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", "cannot be decoded"),
        (String(KeySample.certificate.dropLast(20)), "is missing"),
    ])
    func `a file without certificates is refused with its kind`(text: String, words: String) throws {
        let path = try file(Array(text.utf8))
        let error = #expect(throws: PushError.self) { try TrustRoots.context(path: path) }
        #expect(error?.code == .configurationInvalid)
        let sentence = error?.message ?? ""
        #expect(sentence.hasPrefix("trustRootsPath: \(path) ") && sentence.contains(words), "\(sentence)")
        #expect(!KeySample.leaks(sentence, text), "\(sentence)")
    }

    @Test func `a file that cannot be read is named`() {
        let error = #expect(throws: PushError.self) { try TrustRoots.context(path: "/nowhere.pem") }
        #expect(error?.message == "trustRootsPath: /nowhere.pem cannot be read.")
    }
}
