import CarillonBasics
import CarillonCore
import CarillonWire
import Crypto
import Foundation
import NIOPosix
import TestSupport
import Testing

@testable import CarillonServer

/// The forms in which the server reads keys and certificates.
struct CredentialFormTests {
    private func secret(_ members: [(String, String)]) throws -> GatewaySecret {
        let app = try #require(AppID("com.example.app"))
        return try GatewaySecret(.object(members.map { .init(name: $0.0, value: .string($0.1)) }), of: app)
    }

    private func detail<Value>(_ make: () throws -> Value) -> String {
        do {
            _ = try make()
            Issue.record("nothing is refused")
            return ""
        } catch {
            return (error as? Refusal)?.detail ?? "\(type(of: error))"
        }
    }

    private static let names = [("keyID", "ABC1234567"), ("teamID", "DEF1234567")]

    @Test(arguments: PEMForm.texts)
    func `credentials over the API are read in every form`(form: PEMForm) throws {
        for (_, pem) in KeySample.blocks(of: P256.Signing.PrivateKey()) {
            let token = try secret([("p8", form.text(of: pem))] + Self.names)
            #expect(try token.check(for: .production, at: Date()).kind == "token")
        }
        let (certificate, key) = (form.text(of: KeySample.certificate), form.text(of: KeySample.certificateKey))
        let apart = try secret([("certificate", certificate), ("privateKey", key)])
        #expect(try apart.check(for: .production, at: Date()).kind == "certificate")
        let both = form.text(of: KeySample.certificateKey + KeySample.certificate)
        let together = try secret([("certificate", both), ("privateKey", both)])
        #expect(try together.check(for: .production, at: Date()).kind == "certificate")
    }

    @Test func `an unusable key over the API is refused with its kind`() throws {
        for (name, text, words) in try KeySample.unusable() {
            let token = try secret([("p8", text)] + Self.names)
            let sentence = detail { try token.check(for: .production, at: Date()) }
            #expect(sentence.contains(words), "\(name): \(sentence)")
            #expect(!KeySample.leaks(sentence, text), "\(name): \(sentence)")
        }
    }

    @Test func `a certificate that is not valid now is refused with its time and the time now`() throws {
        let certificate = try secret([
            ("certificate", KeySample.certificate), ("privateKey", KeySample.certificateKey),
        ])
        let late = detail { try certificate.check(for: .production, at: Date(timeIntervalSince1970: 5_000_000_000)) }
        #expect(late.contains("expired at 2124-01-01T00:00:00") && late.contains("the time is 2128-"), "\(late)")
        let early = detail { try certificate.check(for: .production, at: Date(timeIntervalSince1970: 1_000_000_000)) }
        #expect(early.contains("not valid before 2024-01-01T00:00:00") && early.contains("the time is 2001-"), "\(early)")
    }

    @Test func `base64 of a PKCS 12 file can have line breaks, and a fault in it is named`() throws {
        let bytes = [UInt8](0...200)
        let text = Data(bytes).base64EncodedString(options: [.lineLength76Characters, .endLineWithCarriageReturn])
        #expect(try secret([("p12", text)]).kind == .archive(p12: bytes, passphrase: nil))
        #expect(detail { try secret([("p12", "AA%A")]) }.contains("the character \"%\""))
        #expect(detail { try secret([("p12", "AAAAA")]) }.contains("5 characters"))
        #expect(detail { try secret([("p12", "")]) }.contains("is empty"))
    }

    @Test func `a body with members that do not fit is refused with their names`() throws {
        #expect(detail { try secret([]) }.contains("has none; it must have one of"))
        #expect(detail { try secret([("p8", "x"), ("p12", "AAAA")]) }.contains("has \"p8\" and \"p12\""))
        let app = try #require(AppID("com.example.app"))
        let number = JSONValue.object([.init(name: "p8", value: .integer(7))])
        #expect(detail { try GatewaySecret(number, of: app) } == "The field \"p8\" is a number; it must be a text.")
    }

    @Test(arguments: PEMForm.all)
    func `authorities of backends are read in every form`(form: PEMForm) throws {
        let path = try TemporaryDirectory.make() + "/authorities"
        try Data(form.bytes(of: KeySample.certificate)).write(to: URL(filePath: path))
        var settings = OutwardSettings()
        settings.authorityFile = path
        let group = MultiThreadedEventLoopGroup.singleton
        let resolver = NameResolver(group: group, lookup: settings.lookup)
        defer { resolver.shutdown() }
        _ = try OutwardCaller(group: group, resolver: resolver, settings: settings)
        try Data().write(to: URL(filePath: path))
        #expect(throws: KeyFault.empty) { try OutwardCaller(group: group, resolver: resolver, settings: settings) }
    }
}
