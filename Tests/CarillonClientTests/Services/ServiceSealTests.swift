import CarillonBasics
import CarillonWire
import Crypto
import Foundation
import Testing

@testable import CarillonClient

/// Which sealed values open, and which do not.
struct ServiceSealTests {
    private let sender = Curve25519.KeyAgreement.PrivateKey()
    private let receiver = Curve25519.KeyAgreement.PrivateKey()
    private let context = SealContext(
        direction: .request, id: String(repeating: "0", count: 32), consumer: ServicePeer(app: "com.example.a", device: "1"),
        provider: ServicePeer(app: "com.example.b", device: "2"), senderKey: "aa", receiverKey: "bb",
        method: ServiceMethod("com.example.x", "1.0", "m"), deadlineSeconds: 60, foreground: "none", files: 1, fileBytes: 2)

    private func seal(_ content: String = "content") throws -> ServiceSeal.Sealed {
        try ServiceSeal.seal(
            Array(content.utf8), to: Array(receiver.publicKey.rawRepresentation), from: sender, context)
    }

    private func open(
        _ sealed: ServiceSeal.Sealed, _ context: SealContext, from key: Curve25519.KeyAgreement.PrivateKey? = nil
    ) throws -> String {
        let bytes = try ServiceSeal.open(
            sealed, with: receiver, from: Array((key ?? sender).publicKey.rawRepresentation), context)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// RFC 9180 appendix A.2.3: Auth mode of the suite.
    @Test func `the RFC's own message opens`() throws {
        func bytes(_ text: String) throws -> Data { Data(try #require(Hexadecimal.decode(text))) }
        var recipient = try HPKE.Recipient(
            privateKey: Curve25519.KeyAgreement.PrivateKey(
                rawRepresentation: bytes("3ca22a6d1cda1bb9480949ec5329d3bf0b080ca4c45879c95eddb55c70b80b82")),
            ciphersuite: ServiceSeal.suite, info: bytes("4f6465206f6e2061204772656369616e2055726e"),
            encapsulatedKey: bytes("f7674cc8cd7baa5872d1f33dbaffe3314239f6197ddf5ded1746760bfc847e0e"),
            authenticatedBy: Curve25519.KeyAgreement.PublicKey(
                rawRepresentation: bytes("f0f4f9e96c54aeed3f323de8534fffd7e0577e4ce269896716bcb95643c8712b")))
        let text = try recipient.open(
            bytes(
                "ab1a13c9d4f01a87ec3440dbd756e2677bd2ecf9df0ce7ed73869b98e00c09be111cb9fdf077347aeb88e61bdf"),
            authenticating: bytes("436f756e742d30"))
        #expect(String(decoding: text, as: UTF8.self) == "Beauty is truth, truth beauty")
    }

    @Test func `sealed content opens, and its length reveals little`() throws {
        #expect(try open(seal("x"), context).trimmingCharacters(in: .whitespaces) == "x")
        #expect(try seal("x").body.count == 256 + 16)
        #expect(try seal(String(repeating: "x", count: 256)).body.count == 256 + 16)
        #expect(try seal(String(repeating: "x", count: 257)).body.count == 512 + 16)
        #expect(try seal() != seal(), "each has a key of its own")
    }

    @Test func `sealed content does not open in a different context`() throws {
        let sealed = try seal()
        let changes: [(inout SealContext) -> Void] = [
            { $0.direction = .reply }, { $0.id = String(repeating: "1", count: 32) }, { $0.consumer.app = "com.example.c" },
            { $0.consumer.device = "3" }, { $0.provider.app = "com.example.c" }, { $0.provider.device = "3" },
            { $0.senderKey = "ab" }, { $0.receiverKey = "ab" }, { $0.method.service = "com.example.y" },
            { $0.method.version = "1.1" }, { $0.method.name = "n" }, { $0.deadlineSeconds = 61 },
            { $0.foreground = "preferMe" }, { $0.files = 2 }, { $0.fileBytes = 3 }, { $0.requestHash = [1] },
            { ($0.consumer, $0.provider) = ($0.provider, $0.consumer) },
            // No two contexts are one, wherever a part ends.
            { ($0.senderKey, $0.receiverKey) = ("aab", "b") },
        ]
        for (number, change) in changes.enumerated() {
            var other = context
            change(&other)
            #expect(throws: ServiceError(.sealInvalid, Self.text), "\(number)") { try open(sealed, other) }
        }
        #expect(throws: ServiceError.self) { try open(sealed, context, from: receiver) }
        #expect(throws: Never.self) { try open(sealed, context) }
    }

    private static let text = "What came does not open: it was changed, or is somebody else's."

    @Test func `each flipped byte is detected, and each invalid key`() throws {
        let sealed = try seal()
        for place in sealed.body.indices {
            var changed = sealed
            changed.body[place] ^= 1
            #expect(throws: ServiceError.self) { try open(changed, context) }
        }
        for place in sealed.encapsulated.indices {
            var changed = sealed
            changed.encapsulated[place] ^= 1
            #expect(throws: ServiceError.self) { try open(changed, context) }
        }
        for key in [[], [1], Array(repeating: UInt8(0), count: 32), Array(repeating: 0, count: 33)] as [[UInt8]] {
            var changed = sealed
            changed.encapsulated = key
            #expect(throws: ServiceError.self) { try open(changed, context) }
            #expect(throws: ServiceError.self) { try ServiceSeal.seal([1], to: key, from: sender, context) }
        }
    }

    @Test func `a key is its identity's, for one device and until one moment`() throws {
        let identity = Curve25519.Signing.PrivateKey()
        let bundle = try KeyBundle(sender, named: "0011223344556677", until: 5, device: "device", by: identity)
        #expect(bundle.isSigned(for: "device") && !bundle.isSigned(for: "another"))
        let changes: [(inout KeyBundle) -> Void] = [
            { $0.id = "0011223344556678" }, { $0.until = 6 }, { $0.key[0] ^= 1 }, { $0.signature[5] ^= 1 },
            { $0.identity = Array(Curve25519.Signing.PrivateKey().publicKey.rawRepresentation) },
        ]
        for change in changes {
            var other = bundle
            change(&other)
            #expect(!other.isSigned(for: "device"))
        }
        #expect(KeyBundle(bundle.json) == bundle)
    }

    @Test func `a manifest in a payload has texts in Base64 and milliseconds`() throws {
        var manifest = AttachmentManifest(
            id: "a", key: Data([255, 254]), length: 1 << 40, digest: Data([1]),
            expiresAt: Date(timeIntervalSince1970: 1_085_823_654.541))
        #expect(
            String(decoding: manifest.json.bytes, as: UTF8.self)
                == #"{"id":"a","key":"//4=","length":1099511627776,"digest":"AQ==","expiresAt":1085823654541}"#)
        manifest = AttachmentManifest(
            id: "a", key: Data(), length: 0, digest: Data(), expiresAt: Date(timeIntervalSince1970: 1e300))
        #expect(manifest.json["expiresAt"] == .number(1e300 * 1000))
    }

    @Test func `a payload is read unchanged, and an invalid one is refused`() throws {
        let manifest = AttachmentManifest(
            id: String(repeating: "0", count: 36), key: Data(count: 32), length: 10, digest: Data(count: 32),
            expiresAt: Date(timeIntervalSince1970: 1_800_000_000))
        let files = try ["a.txt", "b/c.txt"].map {
            SealedPayload.File(path: try #require(RelativePath($0)), manifest: manifest)
        }
        let payload = SealedPayload(.value(["a": 1]), files: files)
        #expect(try SealedPayload(payload.bytes) == payload && payload.fileBytes == 20)
        var error = ServiceError(number: 3, "text", details: [1])
        error.domain = "com.example.x"
        #expect(try SealedPayload(SealedPayload(.error(error)).bytes) == SealedPayload(.error(error)))

        func code(_ text: String) -> ServiceError.Code? {
            do {
                _ = try SealedPayload(Array(text.utf8))
                return nil
            } catch { return error.code }
        }
        #expect(code("{}") == .serviceParametersInvalid)
        #expect(code(#"{"files":[]}"#) == .serviceParametersInvalid)
        #expect(code(#"{"value":[[1]],"files":[]}"#) == .serviceParametersInvalid)
        #expect(code(#"{"error":{},"files":[]}"#) == .serviceParametersInvalid)
        #expect(code(#"{"value":1,"files":[{"path":"../a"}]}"#) == .pathInvalid)
        #expect(code(#"{"value":1,"files":[{"path":"a"}]}"#) == .attachmentMissing)
        let file = String(decoding: manifest.json.bytes, as: UTF8.self)
        func named(_ first: String, _ second: String) -> String {
            #"{"value":1,"files":[{"path":"\#(first)","manifest":\#(file)},{"path":"\#(second)","manifest":\#(file)}]}"#
        }
        #expect(code(named("a", "a/b")) == .pathInvalid)
        let twice = try SealedPayload(Array(named("a.txt", "A.txt").utf8))
        #expect(twice.files.map(\.path.text) == ["a.txt", "A 2.txt"])
    }
}
