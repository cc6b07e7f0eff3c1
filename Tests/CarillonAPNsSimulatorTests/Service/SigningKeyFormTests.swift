import Crypto
import TestSupport
import Testing

@testable import CarillonAPNsSimulator

/// The forms in which the simulator reads the keys of teams.
struct SigningKeyFormTests {
    @Test(arguments: PEMForm.texts)
    func `private and public keys are read in every form`(form: PEMForm) throws {
        let key = P256.Signing.PrivateKey()
        let verified = key.publicKey.pemRepresentation
        for (name, pem) in KeySample.blocks(of: key) {
            let read = try SigningKey(id: "SIMULATED1", teamID: "SIMTEAM001", privateKey: form.text(of: pem))
            #expect(read.publicKey == verified, "\(name)")
            #expect(try read.makeProviderToken(issuedAt: 1_800_000_000).split(separator: ".").count == 3)
        }
        let text = form.text(of: verified + "\n")
        let read = try SigningKey(id: "SIMULATED1", teamID: "SIMTEAM001", publicKey: text)
        #expect(read.publicKey == verified)
        var accounts = Accounts()
        try accounts.add(read)
    }

    @Test func `an unusable key is refused with its kind`() throws {
        for (name, text, words) in try KeySample.unusable() {
            let error = #expect(throws: SimulatorError.self) {
                try SigningKey(id: "SIMULATED1", teamID: "SIMTEAM001", privateKey: text)
            }
            #expect(error?.code == .keyInvalid)
            let sentence = error?.message ?? ""
            #expect(sentence.contains(words) && sentence.contains("P-256 private key"), "\(name): \(sentence)")
            #expect(!KeySample.leaks(sentence, text), "\(name): \(sentence)")
        }
        let other = P384.Signing.PrivateKey().publicKey.pemRepresentation
        let error = #expect(throws: SimulatorError.self) {
            try SigningKey(id: "SIMULATED1", teamID: "SIMTEAM001", publicKey: other)
        }
        #expect(error?.message.contains("a P-384 public key; it must be a P-256 public key") == true)
    }

    @Test(arguments: [("SHORT", "SIMTEAM001", "key ID \"SHORT\" has 5"), ("SIMULATED1", "TEAM", "team ID \"TEAM\" has 4")])
    func `an identifier of another length is named`(id: String, team: String, words: String) {
        let error = #expect(throws: SimulatorError.self) { try SigningKey(id: id, teamID: team) }
        #expect(error?.code == .identifierInvalid)
        #expect(error?.message.contains(words) == true, "\(error?.message ?? "")")
    }

    @Test func `a key at the place of an identifier is not repeated`() throws {
        for key in KeySample.leftBare(KeySample.certificateKey) {
            let error = #expect(throws: SimulatorError.self) { try SigningKey(id: key, teamID: "SIMTEAM001") }
            let sentence = error?.message ?? ""
            #expect(sentence.contains("The key ID has") && !KeySample.leaks(sentence, key, 8), "\(sentence)")
        }
    }
}
