import CarillonBasics
import Crypto
import TestSupport
import Testing

/// The reader of keys and certificates.
struct KeyMaterialTests {
    private static let need = "a P-256 private key"

    private func fault<Value>(_ read: () throws -> Value) -> KeyFault? {
        do {
            _ = try read()
            return nil
        } catch {
            return error as? KeyFault
        }
    }

    @Test(arguments: PEMForm.all)
    func `a private key is read in every form`(form: PEMForm) throws {
        let key = P256.Signing.PrivateKey()
        for (name, pem) in KeySample.blocks(of: key) {
            let read = try KeyMaterial(bytes: form.bytes(of: pem)).p256PrivateKey()
            #expect(read == [UInt8](key.rawRepresentation), "\(name)")
        }
    }

    @Test(arguments: PEMForm.all)
    func `certificates and their key are read from one file in every form`(form: PEMForm) throws {
        let pem = KeySample.certificate + KeySample.certificateKey + KeySample.certificate
        let material = KeyMaterial(bytes: form.bytes(of: pem))
        let certificate = KeySample.der(KeySample.certificate)
        #expect(try material.certificates() == [certificate, certificate])
        #expect(try material.p256PrivateKey() == KeyMaterial(KeySample.certificateKey).p256PrivateKey())
        #expect(material.hasPrivateKey && material.hasCertificate)
    }

    @Test(arguments: PEMForm.all)
    func `a public key is read in every form`(form: PEMForm) throws {
        let key = P256.Signing.PrivateKey().publicKey
        let read = try KeyMaterial(bytes: form.bytes(of: key.pemRepresentation + "\n")).p256PublicKey()
        #expect(read == [UInt8](key.derRepresentation))
    }

    @Test(arguments: PEMForm.all)
    func `an encrypted key of both kinds keeps what decrypts it in every form`(form: PEMForm) throws {
        // Without any white space the old form cannot be distinguished from its headers.
        let both = [KeySample.encrypted, KeySample.encryptedBefore]
        for pem in form.description == "on one line" ? [KeySample.encrypted] : both {
            let item = try KeyMaterial(bytes: form.bytes(of: pem)).privateKey()
            #expect(item.content == .encryptedKey)
            #expect(item.text == pem)
        }
    }

    @Test func `a key and a certificate are read from DER`() throws {
        let key = P256.Signing.PrivateKey()
        #expect(try KeyMaterial(bytes: [UInt8](key.derRepresentation)).p256PrivateKey() == [UInt8](key.rawRepresentation))
        let certificate = KeySample.der(KeySample.certificate)
        let material = KeyMaterial(bytes: certificate)
        #expect(material.isCertificateFile && !material.hasPrivateKey)
        #expect(try material.certificates() == [certificate])
        #expect(material.pem == KeySample.certificate)
        let cut = KeyMaterial(bytes: Array(certificate.dropLast(10)))
        let damage = PEMBlock.Damage.cutOff(bytes: certificate.count - 10, declared: certificate.count)
        #expect(fault { try cut.certificates() } == .damaged(label: "", damage))
    }

    @Test func `the same key twice is one key, and another curve beside it is not`() throws {
        let key = P256.Signing.PrivateKey()
        let twice = KeySample.blocks(of: key).map { $0.pem }.joined()
        #expect(try KeyMaterial(twice).p256PrivateKey() == [UInt8](key.rawRepresentation))
        let mixed = KeyMaterial(twice + P384.Signing.PrivateKey().pemRepresentation)
        #expect(fault { try mixed.p256PrivateKey() } == .keysDiffer(2))
    }

    @Test func `a text that is not exactly one usable key is refused with its kind and the expected kind`() throws {
        for (name, text, words) in try KeySample.unusable() {
            let sentence = fault { try KeyMaterial(text).p256PrivateKey() }?.sentence("The key", need: Self.need) ?? ""
            #expect(sentence.contains(words) && sentence.contains(Self.need), "\(name): \(sentence)")
            #expect(!KeySample.leaks(sentence, text), "\(name): \(sentence)")
        }
    }

    @Test func `damage in a block that is not needed does not matter, and damage in one that is does`() throws {
        let key = P256.Signing.PrivateKey()
        let damaged = "-----BEGIN CERTIFICATE-----\nAAA\n-----END CERTIFICATE-----\n"
        let material = KeyMaterial(damaged + key.pemRepresentation + "\n" + KeySample.certificate)
        #expect(try material.p256PrivateKey() == [UInt8](key.rawRepresentation))
        #expect(fault { try material.certificates() } == .undecodable(label: "CERTIFICATE"))
        let requests = "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"
        #expect(try KeyMaterial(requests + KeySample.certificate).certificates().count == 1)
        let parameters = "-----BEGIN DH PARAMETERS-----\nMAYCAQcCAQI=\n-----END DH PARAMETERS-----\n"
        #expect(fault { try KeyMaterial(parameters).p256PublicKey() } == .found("the parameters of a key without the key"))
    }

    @Test func `a text that names a block does not matter beside a block`() throws {
        let prose = "It lies between -----BEGIN CERTIFICATE----- then -----END CERTIFICATE-----.\n"
        let other = "-----BEGIN OpenVPN Static key V1-----\n6ace\n-----END OpenVPN Static key V1-----\n"
        let material = KeyMaterial(prose + other + KeySample.certificate)
        #expect(try material.certificates() == [KeySample.der(KeySample.certificate)])
        #expect(!material.hasPrivateKey)
        #expect(fault { try KeyMaterial(prose).certificates() } == .undecodable(label: "CERTIFICATE"))
        #expect(fault { try KeyMaterial(other).certificates() } == .damaged(label: "", .labelUnknown))
        // A label with a missing hyphen can be one of a key.
        let cut = KeyMaterial("-----BEGIN PRIVATE KEY----\nAA==\n-----END PRIVATE KEY-----\n" + KeySample.certificate)
        #expect(cut.hasPrivateKey)
        #expect(try cut.certificates().count == 1)
        // A damaged block among certificates is not a text.
        let damaged = "-----BEGIN CERTIFICATE-----\nM*==\n-----END CERTIFICATE-----\n"
        #expect(fault { try KeyMaterial(KeySample.certificate + damaged).certificates() } != nil)
    }

    @Test func `encrypted keys follow the plain ones of several private keys`() throws {
        let (first, second) = (P256.Signing.PrivateKey(), P256.Signing.PrivateKey())
        let twice = KeySample.blocks(of: first).map { $0.pem }.joined()
        let material = KeyMaterial(KeySample.encrypted + twice + second.pemRepresentation)
        let keys = try material.privateKeys()
        #expect(keys.map(\.content).last == .encryptedKey)
        let read = try keys.dropLast().map { try KeyMaterial($0.text).p256PrivateKey() }
        #expect(read == [[UInt8](first.rawRepresentation), [UInt8](second.rawRepresentation)])
        #expect(try KeyMaterial(KeySample.encrypted).privateKeys().map(\.content) == [.encryptedKey])
        #expect(fault { try KeyMaterial(KeySample.certificate).privateKeys() } == .found("a certificate"))
    }

    @Test func `characters that resemble others are named by their number`() {
        #expect(KeyFault.phrase("*") == "\"*\"")
        #expect(KeyFault.phrase("\u{410}") == "\"\u{410}\" (U+0410)")
        #expect(KeyFault.phrase("\u{A0}") == "U+00A0")
        #expect(KeyFault.phrase("\u{7}") == "U+0007")
    }

    @Test(arguments: ["#", "  ;", "//", "\u{FEFF}# "])
    func `a key on one line that is commented out is not read`(sign: String) throws {
        let key = P256.Signing.PrivateKey()
        let former = P256.Signing.PrivateKey().pemRepresentation.split(separator: "\n").joined()
        let comment = "\(sign) \(former)\n"
        #expect(try KeyMaterial(comment + key.pemRepresentation).p256PrivateKey() == [UInt8](key.rawRepresentation))
        #expect(!KeyMaterial(comment).hasPrivateKey)
        #expect(try KeyMaterial(former).privateKeys().count == 1)
    }

    @Test func `a key of P-256 with more than 32 bytes is refused`() {
        let curve: [UInt8] = [0xA0, 0x0A, 0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07]
        let scalar = [UInt8](repeating: 1, count: 33)
        let content: [UInt8] = [0x02, 0x01, 0x01, 0x04, 0x21] + scalar + curve
        let key = KeyMaterial(KeySample.block("EC PRIVATE KEY", [0x30, UInt8(content.count)] + content))
        #expect(fault { try key.p256PrivateKey() } == .found("a P-256 private key"))
    }

    @Test func `any damage ends in a key, a certificate or a fault`() {
        var random = SeededRandom.forTest()
        let samples: [[UInt8]] = [
            Array((KeySample.certificate + KeySample.certificateKey).utf8), Array(KeySample.encryptedBefore.utf8),
            KeySample.der(KeySample.certificate), KeySample.der(KeySample.certificateKey),
        ]
        var faults = 0
        for round in 0..<2000 {
            var bytes = samples[round % samples.count]
            for _ in 0..<Int.random(in: 1...6, using: &random) where !bytes.isEmpty {
                let place = Int.random(in: 0..<bytes.count, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: bytes[place] = UInt8.random(in: 0...255, using: &random)
                case 1: bytes.removeSubrange(place..<min(bytes.count, place + 40))
                default: bytes.insert(contentsOf: bytes[..<place].suffix(30), at: place)
                }
            }
            let material = KeyMaterial(bytes: bytes)
            if fault({ try material.p256PrivateKey() }) != nil { faults += 1 }
            if fault({ try material.certificates() }) != nil { faults += 1 }
            if fault({ try material.p256PublicKey() }) != nil { faults += 1 }
        }
        #expect(faults > 2000)
    }
}
